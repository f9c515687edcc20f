# NWChem's input: methane molecules in a cubic grid of `copies` in each direction, 8 angstroms apart,
# each of the geometry of least energy (HF/6-31G*: r(CH) = 1.0836 angstroms).
BEGIN {
    words = disk * 131072  # of 8 bytes; disk is in MiB
    integrals = disk ? "semidirect memsize 0 filesize " words : "direct"
    print "start methane"
    print "memory total " memory " mb"
    print "scratch_dir ./scratch"
    print "permanent_dir ./scratch"
    print "geometry units angstroms nocenter noautosym noautoz"
    h = 1.0836 / sqrt(3)
    for (x = 0; x < copies; x++)
        for (y = 0; y < copies; y++)
            for (z = 0; z < copies; z++) {
                atom("C", 0, 0, 0)
                atom("H", h, h, h)
                atom("H", h, -h, -h)
                atom("H", -h, h, -h)
                atom("H", -h, -h, h)
            }
    print "end"
    print "basis cartesian\n  * library 6-31G*\nend"
    print "scf\n  " integrals "\n  maxiter " iterations "\n  thresh 1e-6\nend"
    print "task scf energy"
}

function atom(element, dx, dy, dz) {
    printf "  %s %.6f %.6f %.6f\n", element, 8 * x + dx, 8 * y + dy, 8 * z + dz
}
