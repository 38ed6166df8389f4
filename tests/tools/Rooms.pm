# SPDX-License-Identifier: MIT
# The rooms of the house, lowest first: a file includes, and its object refers to, only its own room
# and those below. What is wrong with that, and which files of one room hang together in a circle.
package Rooms;
use strict;
use warnings;
use Text;

# Behind each stands how many lines it may have: what a feature adds there it takes away elsewhere.
my @house = qw(
    kernel/nt 1560
    kernel/base 3035
    kernel/mm 680
    kernel/console 670
    pmu 2980
    pmu/virt 11240
    pmu/pebs 320
    hal/machine 2197
    hal/buffers 225
    hal 3250
    kernel/counting 480
    kernel/ke 5470
    kernel/profiling 1330
    kernel/etw 2370
    kernel/image 1040
    kernel/services 780
    kernel 1020
    kernel/driver 4320
    kernel/init 520
    boot 1930
    tests/harness 7335
    tests/hal 3895
    tests/pmu 6820
    tests/vpmu 2798
    tests/profiling 3240
    tests/etw 2500
    tests/kernel 3100
    tests/cost 895
    tests 700
);
our @ROOMS = grep { /\D/ } @house;
my %height = map { $ROOMS[$_] => $_ } 0 .. $#ROOMS;

# Folders that are no rooms; the core, which one reads to know how it counts; the whole tree.
my %lines = (@house, qw(
    kernel/user 9400
    tests/ring3 7920
    tests/guests 6340
    tests/machines 2400
    tests/tools 7915
    tests/programs 3730
    tests/drivers 2760
    tests/samples 1260
    tests/mutants 680
    doc 660
));
my $core = qr{^(?:pmu|hal|kernel/counting|kernel/profiling)$};
my ($core_lines, $core_files) = (8000, 50);
my $all_lines = 120_000;

# Arrows upward that are meant: who, what (a header or a symbol), why.
our @EXCEPTIONS = (
    [qr{^hal/profile_interrupt\b},
     qr{^(KeProfileInterruptWithSource|profile_record|kernel/profiling/profile\.h)$},
     'the one call up: NT calls its kernel so'],
    [qr{^hal/profile_interrupt\b}, qr{^(mutex_(acquire|release)|kernel/ke/mutex\.h)$},
     'a thread sleeps while another sets sampling up'],
    [qr{^kernel/main\b}, qr{^(pmu_(init_cpu|report)|pmu/pmu\.h)$}, 'the order of initialisation'],
    [qr{^kernel/syscall\b},
     qr{^(Nt(CreateFile|DeviceIoControlFile|LoadDriver|ReadFile|WriteFile)|kernel/driver/io\.h)$},
     'the one list of services'],
    [qr{^kernel/ke/thread\b}, qr{^trap_return$}, "a thread's first way to ring 3"],
    [qr{^tests/harness/runner\b}, qr{^(bench_(is|run)|tests/cost/bench\.h)$},
     'make bench runs a snippet instead of tests'],
    [qr{^kernel/base/panic\b}, qr{^(text|symbols)_(start|end)$}, "the linker's"],
);

# Circles that are there, each with its reason or what would cut it.
our @CIRCLES = (
    [qw(kernel/syscall kernel/trap kernel/entry), 'code in assembly and its C'],
    [qw(kernel/ring3_run), 'the same'],
    [qw(boot/ap boot/boot), 'the same'],
    [qw(kernel/driver/driver_export kernel/driver/thunk), 'the same'],
);

# A header declares what the file of its name defines. These declare what belongs together and
# several files of their folder define, or, with a path, files of another.
our %ALSO = map { /^\s*(\S+): (.*)/ ? ($1 => [split ' ', $2]) : () } split /\n/, <<'END';
    boot/payload: payload_linux
    hal/machine/clock: clock_sources
    hal/profile_interrupt: kernel/profiling/profile
    hal/source: source_amd source_assign source_tables
    hal/owners: counters_run
    hal/sources: information source source_added source_assign
    kernel/base/assert: panic
    kernel/base/irql: lock
    kernel/base/print: format
    kernel/console/screen: font framebuffer
    kernel/driver/driver: call counters dpc exceptions ke load nmi notify pool ps
    kernel/driver/io: driver driver_names driver_strings transfer
    kernel/etw/stream: log_file
    kernel/init/init: tests/harness/runner
    kernel/ke/etw: etw_hooks
    kernel/ke/etw_stream: etw etw_hooks etw_stack
    kernel/ke/exception: exception_record
    kernel/ke/process: ending
    kernel/ke/synchronization: timer_services waiting
    kernel/ke/thread: ending living thread_cycles
    kernel/image/pe: pe_names
    kernel/profiling/counter_config: counter_driver
    kernel/profiling/profile: profile_object
    kernel/profiling/profiling_enable: isolate_policy profiling_read
    kernel/services/services: process_services
    pmu/branches: kinds
    pmu/measured: measure
    pmu/pmu: amd counter event events/events_amd events/events_intel intel kinds selftest
    pmu/selftest: kinds
    pmu/virt/blocks/blocks: begin_part chain copied kept_blocks rep_strings system_code translate
    pmu/virt/blocks/hot_code: hot_copy
    pmu/virt/cpuid: own_leaf
    pmu/virt/run_entry: deliver exits
    pmu/virt/model: count early model_amd model_intel models pmi refresh
    pmu/virt/virt: host
END

# Why what a file of another room defines is declared here.
our %BECAUSE = (
    'hal/profile_interrupt' => 'the one call up, by its name in NT: see @EXCEPTIONS',
    'kernel/init/init' => "weak: NULL where the image has no tests, which are not the product's",
);

# $home: the file, without its ending, that defines a name. What headers declare of other files.
sub misplaced
{
    my ($home, @headers) = @_;
    my (@wrong, %used);
    for my $header (map { s/\.h$//r } @headers) {
        my ($folder) = $header =~ m{^(.*/)};
        my @names = Text::declared("$header.h");
        $used{$header} = @names;
        for my $name (@names) {
            my $file = $home->{$name} // next;
            my ($listed) = grep { $file eq $_ || $file eq "$folder$_" } @{ $ALSO{$header} // [] };
            $used{"$header: $listed"} = 1 if $listed;
            push @wrong, "$header.h declares $name of $file" if $file ne $header && !$listed;
        }
    }
    for my $header (grep { $used{$_} } sort keys %ALSO) {
        my $room = room_of($header);
        my @others = grep { (room_of($_) // $room) ne $room } @{ $ALSO{$header} };
        push @wrong, "Rooms.pm: $header.h, names of another room: " . ($BECAUSE{$header} // 'why?')
            if @others xor $BECAUSE{$header};
    }
    push @wrong, map { my $header = $_; map { "Rooms.pm: $header.h declares nothing of $_" }
                       grep { !$used{"$header: $_"} } @{ $ALSO{$header} } }
                 grep { $used{$_} } sort keys %ALSO;
    return @wrong;
}

# What no other file uses. Ring 3, weak names and macros are no symbols: of those the text decides.
sub idle
{
    my ($home, $uses, @headers) = @_;
    my %used = map { $_->[1] => 1 } @$uses;
    my ($grep, $all) = ('grep -rlw --include=*.c --include=*.asm', 'boot hal kernel pmu tests');
    return grep { $home->{$_} && !$used{$_} && !(`$grep $_ $all` =~ /\n./) }
           map { Text::declared($_) } @headers;
}

# Calls upward by pointers: kernel/base/upcalls.h has each that other files can set, and says who
# does.
our $UPCALLS = 'kernel/base/upcalls';

sub upcall_faults
{
    my (%said, @wrong);
    my $header = join '', Text::lines("$UPCALLS.h");
    while ($header =~ m{/\*(.*?)\*/((?:\nextern [^;]*;)+)}gs) {
        my ($by, $pointers) = ($1, $2);
        my ($file) = $by =~ /Set by(?:\s|\*)+(\S+\w)/;
        $said{$_} = $file // '' for $pointers =~ /\(\*(\w+)\)/g;
    }
    for my $name (sort keys %said) {
        my $text = join '', Text::lines($said{$name});
        push @wrong, "$UPCALLS.h: $name is not set by $said{$name}"
            if $text !~ /^    .*(?:\b$name = |store_n\(&$name,)/m;
    }
    for my $file (grep { /\.c$/ && (room_of($_) // 'tests') !~ /^tests/ } @_) {
        next if $file eq "$UPCALLS.c";
        push @wrong, map { "$file: $_ belongs in $UPCALLS.h" }
            map { /^(?!static|extern|typedef)\w[\w *]*\(\*(\w+)(?:\[\w*\])?\)\(.*[;=]/ ? $1 : () }
            Text::lines($file);
    }
    return (scalar keys %said, @wrong);
}

# The innermost of these folders in which a file is.
sub innermost
{
    my ($file, $folders) = @_;
    for (my $folder = $file; $folder =~ s{/[^/]+$}{};) {
        return $folder if exists $folders->{$folder};
    }
    return undef;
}

# Of a path; ring 3 is no room.
sub room_of
{
    my ($file) = @_;
    return $file =~ m{^(kernel/user|dll)/} ? undef : innermost($file, \%height);
}

# Of { file => lines }: one line about all, one for each folder, what has too many.
sub budgets
{
    my ($of) = @_;
    my (%sum, $all, @said, @wrong);
    for my $file (keys %$of) {
        my $folder = innermost($file, \%lines) // next;
        $sum{$folder} += $of->{$file};
    }
    $all += $_ for values %$of;
    my @core = grep { (innermost($_, \%lines) // '') =~ $core && !m{/\.} } keys %$of;
    my $in_core = 0;
    $in_core += $of->{$_} for @core;
    for (sort grep { $sum{$_} } keys %lines) {
        push @said, "$_: $sum{$_} lines of $lines{$_}";
        push @wrong, $said[-1] if $sum{$_} > $lines{$_};
    }
    my $sum = "$all lines of $all_lines; the core has $in_core of $core_lines, in " . @core
        . " files of $core_files";
    push @wrong, $sum if $all > $all_lines || $in_core > $core_lines || @core > $core_files;
    return ($sum, \@said, \@wrong);
}

# Whether code or headers of one room may use another.
sub may
{
    my ($from, $to) = @_;
    return 1 if $from eq $to || $from eq 'tests';
    # Rooms of tests use what is tested, and of each other the harness alone.
    return $to !~ m{^tests/} || $to eq 'tests/harness' if $from =~ m{^tests/};
    return $to =~ m{^kernel/(base|nt)$} if $from eq "pmu/virt";
    return $from eq 'boot' if $to eq 'pmu/virt'; # nobody else sees it
    # Above the HAL there are no registers.
    return $from =~ m{^(?:hal|hal/buffers|pmu/pebs)$} if $to =~ m{^pmu};
    return $height{$to} <= $height{$from};
}

sub excepted
{
    my ($file, $what) = @_;
    return grep { $file =~ $_->[0] && $what =~ $_->[1] } @EXCEPTIONS;
}

# The file of ours that an include means: next to the includer, or from the root.
sub meant
{
    my ($file, $name) = @_;
    return 'kernel/base/layout.h' if $name eq 'layout.inc';
    my ($folder) = $file =~ m{^(.*/)};
    return (grep { -f } $name, "$folder$name")[0];
}

# The rooms of the product and who includes whom, for graphviz. An arrow is left out where others
# lead the same way; one upward, which is an exception, is dashed.
sub picture
{
    my (%down, %up);
    for my $file (@_) {
        open my $in, '<', $file or next;
        for (<$in>) {
            my ($name) = /^\s*[#%]\s*include\s*["']([^"']+)/ or next;
            my ($from, $to) = map { room_of($_ // '') // '' } $file, meant($file, $name);
            next if grep { !$_ || m{^tests} } $from, $to or $from eq $to;
            ($height{$to} < $height{$from} ? \%down : \%up)->{$from}{$to} = 1;
        }
    }
    my $leads;
    $leads = sub {
        my ($from, $to) = @_;
        return grep { $_ eq $to || $leads->($_, $to) } keys %{ $down{$from} };
    };
    my @arrows;
    for my $from (@ROOMS) {
        for my $to (sort keys %{ $down{$from} }) {
            push @arrows, qq("$from" -> "$to";)
                if !grep { $_ ne $to && $leads->($_, $to) } keys %{ $down{$from} };
        }
        push @arrows, map { qq("$from" -> "$_" [style=dashed, constraint=false];) }
            sort keys %{ $up{$from} };
    }
    return join("\n    ", 'digraph rooms {', 'rankdir=BT; node [shape=box];', @arrows) . "\n}\n";
}

# $uses: [file, symbol, its file]... What runs upward.
sub upward
{
    my @wrong;
    for (@_) {
        my ($file, $symbol, $home) = @$_;
        my ($from, $to) = (room_of($file), room_of($home));
        next if !$from || !$to || may($from, $to) || excepted($file, $symbol);
        push @wrong, "$file uses $symbol of $home";
    }
    return @wrong;
}

# Tarjan's strongly connected components of files inside their rooms: those of several files that
# nobody named.
sub circles
{
    my (%next, %index, %low, %on, @stack, @found);
    for (@_) {
        my ($file, undef, $home) = @$_;
        my ($from, $to) = (room_of($file) // '', room_of($home) // '-');
        $next{$file}{$home} = 1 if $from eq $to && $file ne $home && $from !~ /^tests/;
    }
    my $run;
    $run = sub {
        my ($v) = @_;
        $index{$v} = $low{$v} = keys %index;
        push @stack, $v;
        $on{$v} = 1;
        for my $w (sort keys %{ $next{$v} // {} }) {
            $run->($w) if !defined $index{$w};
            $low{$v} = $low{$w} if $on{$w} && $low{$w} < $low{$v};
        }
        return if $low{$v} != $index{$v};
        my @group;
        do { push @group, pop @stack; $on{ $group[-1] } = 0 } until $group[-1] eq $v;
        push @found, [sort @group] if @group > 1;
    };
    defined $index{$_} or $run->($_) for sort keys %next;
    return map { my $group = $_;
                 (grep { named($group, $_) } @CIRCLES) ? () : "circle: @$group" } @found;
}

sub named
{
    my ($group, $circle) = @_;
    my @members = @$circle[0 .. $#$circle - 1];
    return !grep { my $file = $_; !grep { ref $_ ? $file =~ $_ : $file eq $_ } @members } @$group;
}

1;
