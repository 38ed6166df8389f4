#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# make bench: exact costs where the virtual PMU is exact, nothing for nothing, and what becomes of
# snippets that do wrong.
use strict;
use warnings;
use Test::More;
use File::Temp 'tempdir';
use JSON::PP;
use lib 'tests/tools';
use Environment;

Environment::forget(qw(OP CODE INIT FILE EVENTS RING UNROLL LOOP RUNS WARMUP FENCE));
$ENV{TIMEOUT} = 600; # of all snippets of a run
my $build = $ENV{BUILD} // 'build';

# What it prints after the kernel's own lines.
sub bench
{
    my ($words, @snippets) = @_;
    my $quoted = join ' ', map { "'$_'" } grep { !/^OP / } @snippets;
    my $said = `$words tests/tools/bench $quoted 2>&1 </dev/null`;
    my $status = $? >> 8;
    $said =~ s/.*?^# running: [^\n]*\n//ms;
    return ($status, $said);
}

# event => value, the same in each run
sub rows
{
    my ($text) = @_;
    my $cell = qr/ +(-?\d+\.\d+)/;
    my @rows = $text =~ /^(\S+)$cell$cell$cell$cell  (?:counter|fixed) \d+$/mg;
    my %value;
    while (my ($event, $min, $median, $max, $spread) = splice @rows, 0, 5) {
        my $same = $min eq $max && $median eq $min && $spread eq '0.000';
        $value{$event} = $same ? $median : "$min to $max";
    }
    return \%value;
}

sub row_faults
{
    my ($title, $part, $want) = @_;
    my $rows = rows($part);
    return "'$title' has no rows" if !%$rows;
    my %all = %$want ? %$want : map { $_ => '0.000' } keys %$rows;
    return map { "'$title': $_ is " . ($rows->{$_} // 'missing') . ", want $all{$_}" }
        grep { ($rows->{$_} // '') ne $all{$_} } sort keys %all;
}

# Of each snippet: rows that it must have, {} for all 0, or a pattern of what is said instead.
sub check
{
    my ($words, $status, @pairs) = @_;
    my (@codes, @wants);
    push(@codes, shift @pairs), push(@wants, shift @pairs) while @pairs;
    my ($got, $said) = bench($words, @codes);
    my @wrong = $got == $status ? () : "status $got, want $status";
    my (undef, @parts) = split /^# snippet: /m, $said;
    push @wrong, @parts . ' snippets reported' if @parts != @codes;
    for my $i (0 .. $#codes) {
        my $part = $parts[$i] // '';
        push @wrong, ref $wants[$i] ne 'Regexp' ? row_faults($codes[$i], $part, $wants[$i])
            : $part =~ $wants[$i] ? () : "'$codes[$i]' must match $wants[$i]";
    }
    ok(!@wrong, @codes . " snippets, $words") or diag(join "\n", @wrong, $said);
}

# Machines with a global control and without one, in both rings; a loop of three iterations executes
# 7 instructions.
my $loop = 'mov edx, 3; .again: dec rdx; jnz .again';
my @plain = ('imul rax, rbx' => { instructions => '1.000', branches => '0.000' },
             $loop           => { instructions => '7.000', branches => '3.000' });
check("UNROLL=20 $_", 0, @plain, '' => {},
      'mov rax, [r14]; mov [r14 + 8], rax; push rax; pop rcx' =>
          { instructions => '4.000', loads => '2.000', stores => '2.000' })
    for 'PMU=intel-v5 EVENTS=all RUNS=2', 'PMU=amd-v2 EVENTS=all RUNS=2 LOOP=3 FENCE=none';
my %one = (instructions => '1.000', branches => '0.000');
check("PMU=amd-ext RING=3 EVENTS=instructions,branches UNROLL=20 RUNS=2 OP='imul r64, r64'", 0,
      'OP latency' => \%one, 'OP throughput' => \%one, @plain, '' => {});

# What does wrong is named, and the next one is measured.
my @names = qw(instructions 0xc0 0xc4:0x00 br_inst_retired:all_branches);
my %fine = ('jmp .on; .on:' => { map { $_ => '1.000' } @names });
check("EVENTS=@{[join ',', @names]} RUNS=1", 1,
      'nop; ud2'              =>
          qr/^# not measured: vector 6 \(#UD.*at offset 0x1 of copy 1 of 100$/m,
      'mov rax, [abs 0x1234]' =>
          qr/^# not measured: vector 14 .* code 0x0, address 0x1234, at offset 0x0 of copy 1 of/m,
      'cli; jmp $'            =>
          qr/^# not measured: it does not end, time was over at offset 0x1 of copy 1 of/m,
      'mov rsp, 0x1000'       => qr/^# not measured: it leaves RSP 0x1000, outside of its stack$/m,
      'mov esp, 8; pop rax'   =>
          qr/^# not measured: vector 14 .* address 0x8, at offset 0x5 of copy 1 of/m,
      'swapgs; cli; int3'     => qr/^# not measured: vector 3 .* at offset 0x4 of copy 1 of/m,
      'ret'                   => qr/^# not measured: vector 14 .* at 0x0, outside the snippet$/m,
      %fine);
check("EVENTS=@{[join ',', @names]} RUNS=1 RING=3 INIT='xor ecx, ecx'", 1,
      'div rcx'               => qr/^# not measured: vector 0 .* at offset 0x0 of copy 1 of/m,
      'cli'                   => qr/^# not measured: vector 13 /m,
      'syscall'               => qr/^# not measured: vector 6 /m,
      'jmp $'                 => qr/^# not measured: it does not end/m,
      'mov rax, [abs 0x20000000]' =>
          qr/^# not measured: vector 14 .* code 0x5, address 0x20000000/m,
      'mov gs, cx; mov rsp, rcx; int3' => qr/^# not measured: vector 3 /m, %fine);
check('EVENTS=instructions,nonsense RUNS=1', 1,
      'nop' => qr/^# not measured: nonsense is no event's name/m);
my ($status, $said) = bench('PMU=none', 'nop');
ok($status == 77 && $said =~ /^# NONE no PMU/m, 'without a PMU that is said')
    or diag("status $status\n$said");

# Before a machine starts.
sub refused
{
    my ($words, $pattern, @snippets) = @_;
    my ($status, $said) = bench($words, @snippets);
    ok($status == 2 && $said =~ $pattern, "refused: $words @snippets")
        or diag("status $status\n$said");
}
refused('', qr/^CODE:2: error: /m, 'nop; bogus rax');
refused('', qr/^CODE:1: error: label alone/m, 'nopp');
refused('RING=1', qr/RING='1' is not one of: 0 3/, 'nop');
refused('UNROLL=0', qr/UNROLL='0' is not one of: 1 to/, 'nop');
refused('ASSEMBLE=1', qr/says what to measure/);
refused('ACCEL=x OP="shl r32, cl"', qr/ACCEL='x' is not one of/);
is(scalar `ASSEMBLE=1 CODE=nop tests/tools/bench`, "$build/bench/snippet0.bench\n",
   'ASSEMBLE: its name only');
like(`cat $build/bench/snippet1.once.asm`,
     qr/^shl eax, cl\nshl edx, cl\nshl ebx, cl\nshl r8d, cl\n/m,
     'OP: registers of their own, and not that of another operand');

# --- Without a snippet: operations of ours. Nothing costs more than in the baseline; what does is
# named.

sub costs
{
    my ($words) = @_;
    my $said = `$words tests/tools/bench 2>&1 </dev/null`;
    return ($? >> 8, $said);
}

sub json { open my $in, '<', $_[0] or return {}; local $/; return decode_json(<$in>) }

# With all rows of each model, as if they had none in common.
my $baseline = json('tests/tools/baseline.json');
my ($common, $others) = delete @$baseline{qw(all others)};
$_ = { %$common, %$_ } for grep { ref } values %$baseline;
for my $model (qw(intel-v5 amd-v2)) {
    my ($status, $said) = costs("PMU=$model");
    ok($status == 0 && $said =~ /^# nothing costs more than in \S*baseline\.json$/m,
       "costs, $model: no growth")
        or diag(grep { /^(?:# |not ok)/ } split /^/, $said);
    my $found = json("$build/bench.json");
    my %of = map { $_->{name} => $_ } @{ $found->{costs} };
    is_deeply([sort keys %of], [sort keys %{ $baseline->{$model} }],
              "costs, $model: the same operations");
    my $switch = $of{'a thread with 4 counters arrives'};
    is("@$switch{qw(rdpmc rdmsr wrmsr)}", '4 0 0', "costs, $model: accesses of a switch");
    ok($switch->{cycles}[0] >= $switch->{most},
       "costs, $model: cycles, by the model at least one each");
    my $arrives = 'a thread with 4 counters arrives';
    like($said, qr/^$arrives +\d+ +4 +0 +0  \d+, \d+, \d+\n.*^$arrives +#+ \d+$/ms,
         "costs, $model: a table and bars");
}
my $other = tempdir(CLEANUP => 1) . '/baseline.json';
sub against
{
    my ($name, $status, $says, $change) = @_;
    my $data = decode_json(JSON::PP->new->encode({ %$baseline, others => $others }));
    $change->($data, $data->{'amd-v2'});
    open my $out, '>', $other or die "$other: $!";
    print $out JSON::PP->new->encode($data);
    close $out;
    my ($found, $said) = costs("PMU=amd-v2 BASELINE=$other");
    ok($found == $status && $said =~ $says, "costs: $name") or diag("status $found\n$said");
}
my $sample = 'one raw read';
against('an instruction more', 1, qr/^# GROWN $sample: 2 instructions before, now 3$/m,
        sub { $_[1]{$sample}[0]-- });
against('an access more', 1, qr/^# GROWN $sample: 0 RDPMC before, now 1$/m,
        sub { $_[1]{$sample}[1]-- });
against('an operation less', 1, qr/^# GROWN gone: not measured$/m,
        sub { $_[1]{gone} = [1, 0, 0, 0] });
against('one that is new', 1, qr/^# GROWN $sample: not in /m, sub { delete $_[1]{$sample} });
against('by another compiler', 0, qr/^# \S+ is of another compiler, cc 1: /m,
        sub {
            @{ $_[0] }{qw(compiler others)} = ('cc 1', {});
            $_[1]{'a counter freed'}[0] -= 40;
        });
against('by another compiler that the baseline has', 1,
        qr/^# GROWN $sample: 2 instructions before/m, sub {
            $_[0]{others}{ json("$build/bench.json")->{compiler} } //= {};
            $_[0]{compiler} = 'cc 1';
            $_[1]{$sample}[0]--;
        });
done_testing;
