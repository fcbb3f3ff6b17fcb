from simulation import BROKEN, nights  # noqa


def test_play(nights):
    e = nights.run("2024-02-01")
    print(e.code, e.stdout, e.stderr)
    e = nights.run("2024-02-02")
    print(e.code, e.stdout, e.stderr)
    nights.helper("1.1", "2024-02-02")
    nights.helper("1.2", "2024-02-02", BROKEN)
    nights.other("1.1", "2024-02-02")
    e = nights.run("2024-02-03")
    print(e.code, e.stdout, e.stderr)
    for r in nights.reports().values():
        print(r)
    e = nights.run("2024-02-04")
    print(e.code, e.stdout, e.stderr)
    nights.helper("1.3", "2024-02-04")
    nights.other("1.2", "2024-02-04")
    e = nights.run("2024-02-05")
    print(e.code, e.stdout, e.stderr)
    for r in nights.reports().values():
        print(r[:3000])
    e = nights.run("2024-02-06")
    print(e.code, e.stdout, e.stderr)
    assert 0
