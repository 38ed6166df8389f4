# SPDX-License-Identifier: MIT
# Facts that stand in one place, for tests/tools/check.t.
package Facts;
use strict;
use warnings;
use Text;

# The fact, where it stands, what a definition of it looks like, and where else that may be.
our @FACTS = (
    ["RDPMC's bit of fixed counters", 'kernel/base/rdpmc.h',
     qr/^(?=.*(?:rdpmc|fixed|selector)).*(?:\b0x40000000u?\b|\b1u?l{0,2} << 30\b)/im,
     'tests/pmu/pmu_rdpmc.c'],  # the manual's number, which is tested there
    ["RDPMC's selector to a counter", 'pmu/pmu.h', qr/- RDPMC_FIXED/],
    ['all elements of a configuration', 'kernel/nt/nt_thread_profiling.h', qr/<< MAX_HW_COUNTERS/],
    ['prefixes of instructions', 'kernel/base/insn.c', qr/case 0x2e:|\bb == 0x2e\b|& 0xe7\b/],
    ['registers of a SIB byte', 'kernel/base/insn.c', qr/\b(?:sib|byte) >> 3\b/],
    ['names of models, machines and quirks', 'tests/tools/names',
     qr{^[^#\n]*virt/(?:names\.def|models\.c|quirk\.c)}m],
);

# What else defines one of them, in these files.
sub faults
{
    my (@wrong, %found);
    for my $file (@_) {
        next if $file =~ m{/mutants/|/tools/(?:checks\.t|Facts\.pm)$|\.md$};
        my $text = join '', Text::lines($file);
        for (@FACTS) {
            my ($fact, $home, $pattern, $also) = @$_;
            next if $text !~ $pattern;
            $found{$fact} = 1 if $file eq $home;
            push @wrong, "$file: $fact: $home has it" if $file ne $home && $file ne ($also // '');
        }
    }
    return (@wrong, map { "$_->[1] does not define it: $_->[0]" } grep { !$found{ $_->[0] } }
                    @FACTS);
}

1;
