/* What programs need of a node: processes, shared libraries, sockets.

     ./services fork | dlopen | sockets

   Prints what it found and exits 0, or says what failed and exits 1. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static int failed(const char *what) {
    printf("%s: %s\n", what, strerror(errno));
    return 1;
}

static int forks(void) {
    enum { CHILDREN = 100 };
    int status, well = 0;
    for (int i = 0; i < CHILDREN; i++) {
        pid_t pid = fork();
        if (pid < 0) return failed("fork");
        if (pid == 0) _exit(7);
        if (waitpid(pid, &status, 0) != pid) return failed("waitpid");
        well += WIFEXITED(status) && WEXITSTATUS(status) == 7;
    }
    printf("%d of %d processes\n", well, CHILDREN);
    return well != CHILDREN;
}

static int libraries(void) {
    void *library = dlopen("libm.so.6", RTLD_NOW);
    if (!library) {
        printf("%s\n", dlerror());
        return 1;
    }
    double (*function)(double) = (double (*)(double))dlsym(library, "cos");
    printf("cos of libm.so.6 %s\n", function && function(0) == 1 ? "is right" : "is wrong");
    return !function || function(0) != 1;
}

/* A listener and a caller at one address; what is sent must come. `room`: bytes at the address. */
static int connects(struct sockaddr *address, socklen_t size, socklen_t room, const char *name) {
    char text[6] = "";
    int at = socket(address->sa_family, SOCK_STREAM, 0);
    int caller = socket(address->sa_family, SOCK_STREAM, 0);
    if (at < 0 || caller < 0) return failed(name);
    if (bind(at, address, size) || listen(at, 1) || getsockname(at, address, &room)) return failed(name);
    if (connect(caller, address, room)) return failed(name);
    int answering = accept(at, NULL, NULL);
    if (answering < 0 || write(caller, "hello", 5) != 5 || read(answering, text, 5) != 5)
        return failed(name);
    close(at), close(caller), close(answering);
    return strcmp(text, "hello") != 0;
}

static int sockets(void) {
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un local = {.sun_family = AF_UNIX};   /* without a path: Linux gives it a name */
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;
    char own[256];
    if (gethostname(own, sizeof own)) return failed("gethostname");
    int fault = getaddrinfo(own, NULL, &hints, &found);
    if (fault) {
        printf("the address of %s: %s\n", own, gai_strerror(fault));
        return 1;
    }
    if (connects((struct sockaddr *)&here, sizeof here, sizeof here, "127.0.0.1")) return 1;
    if (connects(found->ai_addr, found->ai_addrlen, found->ai_addrlen, own)) return 1;
    if (connects((struct sockaddr *)&local, sizeof(sa_family_t), sizeof local, "a local socket"))
        return 1;
    printf("127.0.0.1, %s, local\n", own);
    return 0;
}

int main(int count, char **words) {
    const char *what = count == 2 ? words[1] : "";
    if (!strcmp(what, "fork")) return forks();
    if (!strcmp(what, "dlopen")) return libraries();
    if (!strcmp(what, "sockets")) return sockets();
    fprintf(stderr, "usage: services fork | dlopen | sockets\n");
    return 2;
}
