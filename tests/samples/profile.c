/* SPDX-License-Identifier: MIT */
/* Where does a program spend its time? A histogram of its own code, by the profile interrupt:
 * NtCreateProfile and its kin are in ntdll, but in no header of Windows. */
#include <stdio.h>
#include <windows.h>

#define INTERVAL 10000 /* instructions */
#define INSTRUCTIONS 2 /* KPROFILE_SOURCE: ProfileTotalIssues */
#define BUCKET_LOG2 5
#define BUCKETS 8192

typedef NTSTATUS NTAPI CREATE(HANDLE *, HANDLE, PVOID, SIZE_T, ULONG, ULONG *, ULONG, int,
                              ULONG_PTR);
typedef NTSTATUS NTAPI CONTROL(HANDLE);
typedef NTSTATUS NTAPI SET_INTERVAL(ULONG, int);
typedef NTSTATUS NTAPI ADJUST_PRIVILEGE(ULONG, BOOLEAN, BOOLEAN, BOOLEAN *);

static ULONG buckets[BUCKETS];

__attribute__((noinline, aligned(64))) static unsigned count_primes(unsigned below)
{
    unsigned n = 0;
    for (unsigned i = 2; i < below; i++) {
        unsigned d = 2;
        while (d * d <= i && i % d)
            d++;
        n += d * d > i;
    }
    return n;
}

__attribute__((noinline, aligned(64))) static unsigned hash(unsigned length)
{
    unsigned h = 2166136261u;
    for (unsigned i = 0; i < length; i++)
        h = (h ^ (i & 0xff)) * 16777619u;
    return h;
}

static void *find(const char *name)
{
    return (void *)GetProcAddress(LoadLibrary("ntdll.dll"), name);
}

static void draw(ULONG_PTR base)
{
    ULONG total = 0;
    for (int i = 0; i < BUCKETS; i++)
        total += buckets[i];
    printf("%lu samples, one each %d instructions\n", total, INTERVAL);
    for (int i = 0; i < BUCKETS; i++) {
        if (buckets[i] * 50ull < total)
            continue; /* less than 2 % */
        ULONG_PTR address = base + ((ULONG_PTR)i << BUCKET_LOG2);
        const char *where =
            address >= (ULONG_PTR)hash && address < (ULONG_PTR)hash + 128 ? "hash"
            : address >= (ULONG_PTR)count_primes && address < (ULONG_PTR)count_primes + 128
                ? "count_primes"
                : "?";
        printf("%8llx %-12s %5lu ", (unsigned long long)address, where, buckets[i]);
        for (ULONG n = buckets[i] * 50 / total; n; n--)
            putchar('#');
        printf("\n");
    }
}

int main(void)
{
    CREATE *create = (CREATE *)find("NtCreateProfile");
    CONTROL *start = (CONTROL *)find("NtStartProfile"), *stop = (CONTROL *)find("NtStopProfile");
    SET_INTERVAL *set_interval = (SET_INTERVAL *)find("NtSetIntervalProfile");
    ADJUST_PRIVILEGE *adjust = (ADJUST_PRIVILEGE *)find("RtlAdjustPrivilege");
    ULONG_PTR base = (ULONG_PTR)count_primes & ~(ULONG_PTR)0xffff;
    HANDLE profile;
    BOOLEAN was;

    adjust(11, TRUE, FALSE, &was); /* SeSystemProfilePrivilege, for the interval */
    set_interval(INTERVAL, INSTRUCTIONS);
    NTSTATUS status = create(&profile, (HANDLE)-1, (PVOID)base, (SIZE_T)BUCKETS << BUCKET_LOG2,
                             BUCKET_LOG2, buckets, sizeof buckets, INSTRUCTIONS, ~(ULONG_PTR)0);
    if (!status)
        status = start(profile);
    if (status) {
        fprintf(stderr, "NtCreateProfile, NtStartProfile: status 0x%08lx\n", (unsigned long)status);
        return 1;
    }
    unsigned primes = count_primes(20000), h = hash(1000000);
    stop(profile);
    printf("%u primes, hash %08x\n", primes, h);
    draw(base);
    return 0;
}
