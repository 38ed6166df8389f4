# SPDX-License-Identifier: MIT
# Changes of source lines that a slip might have made: those of tests/mutants by hand, and what
# two dozen operators make of any line of code.
package Mutants;
use strict;
use warnings;
use Text;

# The text that a mutant changes, however white space stands in it.
sub pattern
{
    my ($text) = @_;
    my $pattern = join '\s*', map { quotemeta } $text =~ /\w+|\S/g;
    return qr/$pattern/;
}

# The one source below these folders that a row names by its base name. So it may move.
my %below;
sub source
{
    my ($end, $folders) = @_;
    $below{$folders} //= [split /\n/, `find $folders -type f 2>/dev/null`];
    my @found = grep { m{/\Q$end\E$} } @{ $below{$folders} };
    return @found == 1 ? $found[0] : "$end (" . @found . ' files)';
}

# The rows of these files, with the path in this column.
sub rows
{
    my ($column, @files) = @_;
    my @rows = map { my @list = eval Text::content($_); die "$_: $@" if $@; @list } @files;
    $_->[$column] = source($_->[$column], 'boot hal kernel pmu') for @rows;
    return @rows;
}

sub by_hand
{
    my @rows = rows(3, grep { !/equivalent$/ } sort glob 'tests/mutants/*');
    $_->[7] = source($_->[7], 'tests') for grep { $_->[7] } @rows;
    return @rows;
}
sub equivalent { return rows(0, grep { -e } 'tests/mutants/equivalent') }

my %opposite = ('<' => '<=', '<=' => '<', '>' => '>=', '>=' => '>', '==' => '!=', '!=' => '==',
                '&&' => '||', '||' => '&&', '<<' => '>>', '>>' => '<<', '+=' => '-=', '-=' => '+=',
                '++' => '--', '--' => '++', '&' => '|', '|' => '&', '|=' => '&= ~', '&=' => '|=',
                true => 'false', false => 'true');
sub opposite { return $opposite{ $_[0] } }

# What is changed, where it stands in a line, what it becomes by what stood there; each place of the
# line is a mutant.
my $call = qr/(?!(?:ASSERT|print|panic|lock_|mutex_|sched_(?:un)?lock|_Static)\w*\()[A-Za-z]\w*\(/;
my $place = qr/[*(]*[a-z]\w*(?:[.\w)]|->|\[[^\]]*\])*/;
my @operators = (
    ['condition negated', qr/(?<=if )(\(((?:[^()]|(?1))*)\))(?= \{$|$)/, sub { "(!$_[0])" }],
    ['bound off by one', qr/(?<= )[<>]=?(?= )/, \&opposite],
    ['1 more or less left out', qr/ [+-] 1\b(?![.<])/, sub { '' }],
    ['comparison inverted', qr/(?<= )[=!]=(?= )/, \&opposite],
    ['and for or', qr/(?<= )(?:&&|\|\|)(?= )/, \&opposite],
    ['call left out', qr/(?<=^    )\s*$call.*\);$/, sub { ';' }],
    ['assignment left out', qr/(?<=^    )\s*$place [-+|&]?= [^;{]*;$/, sub { ';' }],
    ['CPU swapped', qr/\bcpu_number\(\)/, sub { '0' }],
    ['mask inverted', qr/(?<= )(?:&= ~|\|=|&=)(?= |\w)/,
     sub { $_[0] =~ /~/ ? '|= ' : opposite($_[0]) }],
    ['mask inverted', qr/(?<=& )~/, sub { '' }],
    ['bits joined otherwise', qr/(?<= )[&|](?= )/, \&opposite],
    ['another status', qr/\bSTATUS_(?!PENDING)\w+/,
     sub { $_[0] =~ /_INVALID_PARAMETER$/ ? 'STATUS_UNSUCCESSFUL' : 'STATUS_INVALID_PARAMETER' }],
    ['another constant', qr/(?<![\w.'"%-])\d+(?=u?\b)(?!\w{3}|\.\d)/, sub { $_[0] + 1 }],
    ['another result', qr/(?<=return )(?:true|false)(?=;)/, \&opposite],
    ['another result', qr/(?<=return )(?!true|false|STATUS|NULL|0;)\w[^;]*(?=;)/, sub { '0' }],
    ['shifted the other way', qr/(?<= )(?:<<|>>)(?= )/, \&opposite],
    ['width halved', qr/\(uint64_t\)/, sub { '(uint32_t)' }],
    ['width halved', qr/(?<=\(uint)32(?=_t\))/, sub { '16' }],
    ['counted the other way', qr/\+\+|--|(?<= )[-+]=(?= )/, \&opposite],
);
# What a bound off by one does not change: one more look at what does not come, a wait by the clock,
# the larger or smaller of two, and their difference.
my $no_bound = qr{[<>]=?\ \w*(?:TRIES|PAUSES|SPIN|LOOKS|POLLS)\b|\b(?:rdtsc|clock_ns)\(\)
                  |(?<![^ (])([^ (].*?)\ [<>]=?\ (.+?)\ \?
                   \ (?:\g1(?:\ -\ \g2)?\ :\ (?:\g2(?:\ -\ \g1)?|0)|\g2\ :\ \g1)(?=[;,)])}x;
# What no operator touches: comments, assembly, what is said.
my $no_code = qr{^\s*(?:\*(?![\w(*])|/\*|//|\#|case\b.*:$|asm\b)|ASSERT|_Static_assert
                  |\bpanic\(|print\w*\(}x;
# A way out that an error takes, below its condition.
my $way_out = qr/^\s+(?:return(?: STATUS_\w+| false| NULL)?|goto \w+|continue|break);$/;
my $lock = qr/^\s+(?:KIRQL )?(?:irql = )?(sched_|lock_|mutex_)(?:lock|acquire)\((.*)\);$/;

# A lock that is not taken, from its line to the function's end: { line => text }.
sub without_lock
{
    my ($lines, $n) = @_;
    my ($kind, $name) = $lines->[$n] =~ $lock or return;
    my %new = ($n => $lines->[$n] =~ s/\w+\(.*\)/irql_raise(DISPATCH_LEVEL)/r);
    $new{$n} = $lines->[$n] =~ s/\w+\(.*/;/r if $kind eq 'mutex_';
    my $end = $kind eq 'sched_' ? qr/sched_unlock\((\w+)\)/
        : qr/${kind}release\(\Q$name\E(?:, (\w+))?\)/;
    for (my $i = $n + 1; $i < @$lines && $lines->[$i] !~ /^\}/; $i++) {
        $new{$i} = $lines->[$i] =~ s/$end/$1 ? "irql_lower($1)" : '(void)0'/er
            if $lines->[$i] =~ $end;
    }
    return keys %new > 1 ? \%new : ();
}

# The code with each match, in turn, another of these.
sub others
{
    my ($code, $pattern, @choice) = @_;
    my @new;
    while ($code =~ /"[^"]*"(*SKIP)(*F)|$pattern/g) {
        my ($from, $to) = ($-[1], $+[1]);
        my ($next) = grep { $_ ne $1 } @choice or next;
        push @new, substr($code, 0, $from) . $next . substr($code, $to);
    }
    return @new;
}

# What people do (the tree has no goto to go wrong): from a file's lines and the number of one,
# { line => text }...
my $declared = qr/\w+ [\w *]*\w(?:\[.*\])?(?: =|[,;])/;
my $statement = qr/^(\s++)(?!\}|return|break|continue|case|default|else|\(void\)|$declared)/;
# Two assignments, of which neither has what the other writes, nor gives what has it to a routine
# that does more than compute: in either order they do the same.
my $pure = qr/\b(?:cpuid|low_bits|sizeof|[A-Z][A-Z0-9_]+|u(?:16|32|64)|insn_\w+|thread_current
                 |cpu_number|clock_ns)\(/x;
sub independent
{
    my $written = qr/^\s*\**([^=(]*?\w\]?) [-+|&]?= |^\s*(\S+\w)(?:\+\+|--);$/;
    my @written = map { $_ =~ $written ? $1 // $2 : '' } @_;
    for (0, 1) {
        my ($path, $other) = ($written[$_], $_[!$_] =~ s/$pure/(/gr);
        $path =~ s/\[(?![A-Z0-9_]+\]).*//;
        my ($root) = $path =~ /^(\w+)/ or return 0;
        return 0 if $other =~ /(?<![\w.>])\Q$path\E(?!\w)/
            || ($other =~ /\w\(/ && ($path !~ /->/ || $other =~ / = .*\b$root\b/));
    }
    return 1;
}

my $undo = qr/release|free|unlock|close|cancel|remove|undo|dereference/;
my @habits = (
    ['release left out on the way out', sub {
        my ($lines, $n, $code) = @_;
        my $refused = grep { ($lines->[$_] // '') =~ /^\s+(?:return|goto)\b/ } $n + 1 .. $n + 3;
        return $code =~ /^\s+\w*(?:$undo)\w*\(.*\);$/ && $refused ? { $n => ';' } : (); }],
    ['neighbours swapped', sub {
        my ($lines, $n, $code) = @_;
        my $next = ($lines->[$n + 1] // '') =~ s{\s*/\*.*}{}r;
        my ($in) = $code =~ /$statement.*;$/ or return;
        return if $next !~ /$statement.*;$/ || $1 ne $in || $next eq $code
            || $next =~ $no_code || independent($code, $next)
            || ($lines->[$n - 1] // '') =~ /(?:\)|else|do)$/;
        return { $n => $next, $n + 1 => $code }; }],
    ['another CPU in scope', sub {
        my ($lines, $n, $code) = @_;
        for (my $i = $n; $i && $lines->[$i] ne '{'; $i--) {
            return if $lines->[$i] =~ /unsigned cpu = cpu_number\(\);/; # it is the same
        }
        return map { { $n => $_ } } others($code, qr/(?<=[[(!=] |[[( ])(cpu|\w+->cpu)(?=[]),;])/,
                                           'cpu_number()'); }],
    ["a neighbour's status", sub {
        my ($lines, $n, $code) = @_;
        my %seen;
        my @all = grep { !$seen{$_}++ && $_ ne 'STATUS_PENDING' } map { /\b(STATUS_\w+)/g }
            @$lines[$n .. $#$lines], @$lines;
        return map { { $n => $_ } } others($code, qr/\b(STATUS_\w+)/, @all); }],
    ['mask or shift one off', sub {
        my ($lines, $n, $code) = @_;
        my @new;
        push @new, $` . ($1 + 1) . $' while $code =~ /(?<=<< |>> )(\d+)/g;
        no warnings 'portable';
        push @new, $` . sprintf('0x%x', hex($1) >> 1) . $'
            while $code =~ /\b0x([0-9a-f]+)(?=u?l?\b)/g;
        return map { { $n => $_ } } @new; }],
    ['|= for =', sub { # where bits are written
        my ($lines, $n, $code) = @_;
        my ($to, $bits) = $code =~ /^(\s+$place) = ([^{"]*;)$/ or return;
        return $bits =~ / [&|] |~|<< |>> |\b0x/ ? { $n => "$to |= $bits" } : (); }],
    ['field not copied', sub {
        my ($lines, $n, $code) = @_;
        return map { { $n => $_ } } $code =~ /^\s+\.\w+ = [^{}]*,$/ ? ''
            : $code =~ /^(.*\{ (?:.*, )?)\.\w+ = [^,{}()]*, (.*)$/ ? "$1$2" : (); }],
);
our $PEOPLE = join '|', 'bound off', 'CPU swapped', 'lock left out',
    map { quotemeta $_->[0] } @habits;

# All mutants of a file: [what, file, line, text before, text after, { line from 0 => text }].
sub candidates
{
    my ($file, $source) = @_;
    my ($inside, @found) = 0;
    my @lines = split /\n/, $source;
    for my $n (0 .. $#lines) {
        my $line = $lines[$n];
        $inside = 1 if $line eq '{';
        $inside = 0 if $line eq '}';
        next if !$inside || $line =~ $no_code;
        my $code = $line =~ s{\s*/\*.*}{}r;
        my $found = sub {
            my ($what, $new) = @_;
            push @found, [$what, $file, $n + 1, map({ s/^\s+//r } $code, $new->{$n}), $new];
        };
        for (@operators) {
            my ($what, $pattern, $becomes) = @$_;
            next if $what =~ /^bound/ && $code =~ $no_bound;
            while ($code =~ /$pattern/g) {
                my ($from, $to) = ($-[0], $+[0]);
                my $old = substr $code, $from, $to - $from;
                my $new = $code;
                substr $new, $from, $to - $from, $becomes->($old);
                $found->($what, { $n => $new });
            }
        }
        $found->('way out left out', { $n => ';' })
            if $code =~ $way_out && $lines[$n - 1] =~ /^\s+(?:else )?if .*\)$/;
        my $new = without_lock(\@lines, $n);
        $found->('lock left out', $new) if $new;
        for my $habit (@habits) {
            $found->($habit->[0], $_) for $habit->[1]->(\@lines, $n, $code);
        }
    }
    return @found;
}

# So many of these files, each of another line, chosen by a seed; only operators of this name.
sub choose
{
    my ($count, $seed, $kind, @files) = @_;
    my (%of_line, @chosen);
    push @{ $of_line{"$_->[1]:$_->[2]"} }, $_
        for grep { $_->[0] =~ $kind } map { candidates($_, Text::content($_)) } @files;
    my @places = sort keys %of_line;
    srand $seed;
    while (@places && @chosen < $count) {
        my $of = $of_line{ splice @places, rand @places, 1 };
        push @chosen, $of->[rand @$of];
    }
    return @chosen;
}

# The file's text with it.
sub changed
{
    my ($mutant, $source) = @_;
    my @lines = split /\n/, $source;
    my $new = $mutant->[5];
    $lines[$_] = $new->{$_} for keys %$new;
    return join '', map { "$_\n" } @lines;
}

1;
