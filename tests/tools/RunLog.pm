# SPDX-License-Identifier: MIT
# A log of a run, read for tests/tools/report: machine, PMU, results and what was measured. A log
# that did not come whole, or that contradicts itself, is refused with the reason.
# tests/tools/report-fields describes the result.
package RunLog;
use strict;
use warnings;
use JSON::PP ();
use Stream;

use constant SIZE_MAX => 16 << 20;
use constant { NUMBER => qr/\d{1,15}/, SIGNED => qr/-?\d{1,15}/ };

# What tests/tools/judge adds below the kernel's last line.
my $judged = qr/^# (PASS|FAIL|NONE|CRASH|HANG|BROKEN)\b(?!.* \[\d+ bytes, crc32)/;

# The lines of a file, fit to be shown; or nothing and why not.
sub lines_of
{
    my ($file) = @_;
    open my $in, '<:raw', $file or return (undef, "$!");
    -f $in or return (undef, 'not a file');
    read($in, my $text, SIZE_MAX + 1) // return (undef, "$!");
    return (undef, 'longer than any log') if length $text > SIZE_MAX;
    return [split /\n/, Stream::printable($text)];
}

# Why this is no log to rely on; nothing if it is one.
sub refusal
{
    my ($stream, @words) = @_;
    my @broken = @{ $stream->{broken} };
    return 'there is no line "# ntpmu: begin"' if !$stream->{summed};
    push @broken, map { /^# BROKEN (.*)/ } @words;
    my $unfinished = grep { /^# (?:CRASH|HANG)\b/ } @words;
    return $broken[0] if @broken || ($unfinished && !$stream->{verdict});
    return 'there is no plan: no tests were run' if !defined $stream->{plan};
    $stream->ending($stream->{verdict} // '');
    return $stream->{broken}[0];
}

# --- What failed.

# Names of the tests of a log that failed, and at most 25 lines of it: what each said above its
# line, and how the log ends.
sub failures
{
    my ($text) = @_;
    my (@said, @names, @shown);
    my @lines = split /\n/, $text;
    for (@lines) {
        push @said, $_ and next if /^# /;
        if (/^not ok \d+ - (\S+)/) {
            push @names, $1;
            push @shown, splice(@said, @said > 9 ? -9 : 0), $_;
        }
        @said = ();
    }
    splice @shown, 20, @shown - 20, "... and more of " . @names . " failed tests" if @shown > 20;
    my $tail = @shown ? 4 : 15;
    return (\@names, @shown, splice @lines, @lines > $tail ? -$tail : 0);
}

# --- The machine.

# A line of pmu/kinds.c; only its text, where it is none that says what counters there are.
sub kind_of
{
    my ($text) = @_;
    my %kind = (pmu => $text);
    $kind{cpus} = $1 if $text =~ s/^CPUs ([\d,-]+): //;
    if ($text =~ /\b(intel|amd) version (\d{1,3}), (\d{1,3}) counters of (\d{1,3}) bits/) {
        @kind{qw(vendor version counters width)} = ($1, map { $_ + 0 } $2, $3, $4);
    }
    @kind{qw(fixed fixed_width)} = ($1 + 0, $2 + 0) if $text =~ /, (\d{1,3}) fixed of (\d{1,3})\b/;
    $kind{events} = $1 if $text =~ /; ([^;:]+): /;
    return \%kind;
}

# Lines "# name: text" before the plan; of a PMU and what was measured of it, kind by kind.
sub machine
{
    my @lines = @_;
    my (@facts, @kinds, @remarks);
    for (@lines) {
        if (/^# pmu: (.*)/) {
            push @kinds, kind_of($1);
        } elsif (/^# measured: (.*)/ && @kinds) {
            $kinds[-1]{measured} = $1;
        } elsif (/^# ([a-z][a-z ]{0,30}): (.*)/) {
            push @facts, { name => $1, text => $2 } if $_ ne '# ntpmu: begin';
        } elsif (/^# /) {
            push @remarks, $_;
        }
    }
    return (facts => \@facts, kinds => \@kinds, remarks => \@remarks);
}

# --- What was measured.

# What an operation costs, as tests/harness/cost.c prints it; on several kinds of CPU the least and
# the most.
my $cost = qr/^\#\ cost:\ ([^:]+):\ (${\NUMBER})\ instructions
    (?:,\ (${\NUMBER})\ RDPMC,\ (${\NUMBER})\ RDMSR,\ (${\NUMBER})\ WRMSR)?
    (?:;\ cycles\ (${\NUMBER}),\ (${\NUMBER}),\ (${\NUMBER}))?$/x;

sub costs
{
    my ($test, @lines) = @_;
    my (%of, @order);
    for (@lines) {
        my ($name, $n, @rest) = /$cost/ or next;
        @rest = map { defined $_ ? $_ + 0 : undef } @rest;
        my $c = $of{$name};
        push @order, $c = $of{$name} =
            { test => $test, name => $name, least => $n + 0, most => $n + 0 } if !$c;
        $c->{least} = $n + 0 if $n < $c->{least};
        $c->{most} = $n + 0 if $n > $c->{most};
        @$c{qw(rdpmc rdmsr wrmsr)} = @rest[0 .. 2] if defined $rest[0];
        $c->{cycles} = [@rest[3 .. 5]] if defined $rest[3];
    }
    return @order;
}

# Instructions by which an interrupt was late; beyond: it was later than could be seen.
sub skid
{
    my ($test, @lines) = @_;
    my @all = map { /^# skid: (${\SIGNED}) instructions( or more)?/ ? [$1 + 0, $2] : () } @lines;
    return if !@all;
    return {
        test => $test,
        instructions => [map { $_->[0] } grep { !$_->[1] } @all],
        beyond => [map { $_->[0] } grep { $_->[1] } @all],
    };
}

sub overcounts
{
    my ($test, @lines) = @_;
    my $n = NUMBER;
    my $regex = qr/^# ($n) regions, ($n) of them exact; instructions too many: (-?$n) to (-?$n)$/;
    return map {
        my %found = (test => $test);
        @found{qw(regions exact least most)} = map { $_ + 0 } /$regex/;
        exists $found{most} && defined $found{most} ? \%found : ();
    } @lines;
}

# A title that says how many samples, then a bar for each function.
sub samples
{
    my ($test, @lines) = @_;
    my @pictures;
    for (@lines) {
        if (/^# (by \w.*, \d+ samples)$/) {
            push @pictures, { test => $test, title => $1, bars => [] };
        } elsif (@pictures && /^#   (\S+) +#* +(\d{1,3}) %$/) {
            push @{ $pictures[-1]{bars} }, { name => $1, percent => $2 > 100 ? 100 : $2 + 0 };
        }
    }
    return grep { @{ $_->{bars} } } @pictures;
}

sub measured
{
    my %found = (cost => [], skid => [], overcount => [], samples => []);
    for my $test (@_) {
        my @args = ($test->{name}, @{ $test->{lines} });
        push @{ $found{cost} }, costs(@args);
        push @{ $found{skid} }, skid(@args);
        push @{ $found{overcount} }, overcounts(@args);
        push @{ $found{samples} }, samples(@args);
    }
    return \%found;
}

# --- All of it.

sub result
{
    my ($r) = @_;
    my %test = (name => $r->{name}, result => $r->{result}, lines => $r->{lines});
    $test{reason} = $r->{reason} if $r->{result} eq 'skipped';
    return \%test;
}

# The log of this file, shown by this name, as a structure; or nothing and why it is refused.
sub load
{
    my ($file, $name) = @_;
    my ($lines, $why) = lines_of($file);
    return (undef, $why) if !$lines;
    my (@words, $begun);
    unshift @words, pop @$lines while @$lines && ($lines->[-1] eq '' || $lines->[-1] =~ $judged);
    @words = grep { $_ ne '' } @words;
    my $stream = Stream->new;
    $stream->line($_) for @$lines;
    $why = refusal($stream, @words);
    return (undef, $why) if $why;
    my @head = grep { ($begun ||= /^# ntpmu: begin$/) || /^# (?:machine|host): / }
        @{ $stream->{head} };
    my ($word) = map { /^# ([A-Z]+)/ } $words[-1] // $stream->{verdict_line};
    my @tests = map { result($_) } @{ $stream->{results} };
    return {
        file => Stream::printable($name // $file) =~ tr/\n/?/r, verdict => $word,
        says => [grep { defined } $stream->{verdict_line}, @words],
        whole => $stream->{checked} ? JSON::PP::true : JSON::PP::false,
        planned => ($stream->{plan} // 0) + 0, %{ $stream->{count} },
        checks => ($stream->{checks} // 0) + 0, unfinished => $stream->{lines},
        machine(@head), tests => \@tests, measured => measured(@tests),
    };
}

# --- What a photograph of the last page has instead of a log: tests/harness/summary.c makes it.

my $code = qr{\A\s*ntpmu1
    \ (?<verdict>PASS|FAIL|NONE)\ (?<passed>\d{1,12})/(?<failed>\d{1,12})/(?<skipped>\d{1,12})
    \ (?<checks>\d{1,12})\ (?<bytes>\d{1,12}):(?<crc>[0-9a-f]{8})\s+
    (?<build>[0-9a-f]{8})\ (?<firmware>UEFI|BIOS)\ (?<memory>\d{1,12})M\ (?<cpus>\d{1,12})
    \ (?<host>[^\n]+?)\s+
    (?<family>[0-9a-f]+)\.(?<model>[0-9a-f]+)\.(?<stepping>[0-9a-f]+)
    \ (?<pmu>none|intel|amd)(?<version>\d{1,12})
    \ (?<n>\d{1,12})x(?<width>\d{1,12})\+(?<fixed>\d{1,12})x(?<fixed_width>\d{1,12})
    (?<names>(?:\ [\w.]+)*)(?:\ \+(?<more>\d{1,12}))?(?:\n(?<name>.*))?\s*\z}x;

# The text of a QR code as a structure; or nothing and why it is refused.
sub of_code
{
    my ($text, $name) = @_;
    $text = Stream::printable($text);
    return (undef, 'this is not the text of one of our QR codes')
        if length $text > 400 || $text !~ $code;
    my %c = %+;
    my @names = split ' ', $c{names};
    return (undef, 'it names other failures than it counts')
        if @names + ($c{more} // 0) != $c{failed};
    return (undef, 'its verdict contradicts its totals')
        if ($c{verdict} eq 'FAIL') != ($c{failed} > 0);
    my $counters = "$c{pmu} version $c{version}, $c{n} counters of $c{width} bits";
    $counters .= ", $c{fixed} fixed of $c{fixed_width}" if $c{fixed};
    my @facts = (
        cpu => ($c{name} || 'no name')
            . " (family $c{family}h model $c{model}h stepping $c{stepping}h)",
        hypervisor => $c{host} eq '-' ? 'none' : $c{host}, firmware => $c{firmware},
        running => "$c{cpus} CPUs, $c{memory} MB", build => $c{build},
    );
    my @all = map { $_ + 0 } @c{qw(passed failed skipped)};
    return {
        file => $name, verdict => $c{verdict}, code => JSON::PP::true, whole => JSON::PP::false,
        says => ["# $c{verdict} [$c{bytes} bytes, crc32 $c{crc}]"],
        planned => $all[0] + $all[1] + $all[2], passed => $all[0], failed => $all[1],
        skipped => $all[2], checks => $c{checks} + 0, unfinished => [], measured => measured(),
        facts => [map { { name => $facts[2 * $_], text => $facts[2 * $_ + 1] } }
                  0 .. @facts / 2 - 1],
        kinds => [$c{pmu} eq 'none' ? { pmu => 'none' } : kind_of($counters)],
        remarks => [$c{more} ? "$c{more} more tests failed, without their names here" : ()],
        tests => [map { { name => $_, result => 'failed', lines => [] } } @names],
    };
}

1;
