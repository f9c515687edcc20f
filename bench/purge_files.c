/* The system calls of a purge alone, in one thread: make, walk or remove FOLDERS * FILES files.
 *
 *   purge_files make|walk|remove ROOT FOLDERS FILES */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void one(char act, int folder, const char *name) {
    struct stat about;
    if (act == 'w') {
        fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW);
    } else if (act == 'r') {
        unlinkat(folder, name, 0);
    } else {
        struct timespec old[2] = {{1000000000, 0}, {1000000000, 0}};
        close(openat(folder, name, O_CREAT | O_WRONLY, 0644));
        utimensat(folder, name, old, 0);
    }
}

int main(int count, char **words) {
    if (count != 5 || chdir(words[2]))
        return 2;
    char act = words[1][0], name[64];
    int folders = atoi(words[3]), files = atoi(words[4]);
    for (int i = 0; i < folders; i++) {
        snprintf(name, sizeof name, "user%d", i % 50);
        if (act == 'm')
            mkdir(name, 0755);
        snprintf(name, sizeof name, "user%d/run%d", i % 50, i);
        if (act == 'm')
            mkdir(name, 0755);
        int folder = open(name, O_RDONLY | O_DIRECTORY);
        for (int j = 0; j < files; j++) {
            snprintf(name, sizeof name, "output.%d.dat", j);
            one(act, folder, name);
        }
        close(folder);
    }
    return 0;
}
