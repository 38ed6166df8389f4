# SPDX-License-Identifier: MIT
# Which of a file's functions touch what a lock of the file guards ("L: lock" behind a variable or
# a field of a header) and have not the lock: they take it, or call what takes it and keeps it, or
# all that call them have it; or call without it what says so above, in the file or, of the
# dispatcher lock and memory.mutex, in a header; or do that before they take it or after they give
# it back; or look at what it guards, or call pmu_*, after that; or write what they have published;
# or use what they have freed; or call what is a driver's beside driver_enter and driver_leave. What
# others call says "L: lock" above, or "L: lock: why" it needs none.
package Guards;
use strict;
use warnings;

# { variable => lock }. What is read or written without the lock on purpose says "atomic".
sub guarded
{
    my ($source) = @_;
    my %guarded;
    my %locks = map { $_ => 1 } $source =~ /^static struct (?:lock|mutex) (\w+)/mg;
    while ($source =~ m{^(?:static|\}) ([^()\n]*?);\s*/\*([^*]*?\bL: (\w+)\b[^*]*)}mg) {
        my ($declared, $comment, $lock) = ($1, $2, $3);
        next if !$locks{$lock} || $comment =~ /to write|atomic/;
        $declared =~ s/ = .*?(?=, \w+ =|$)//g;
        $guarded{$_} = $lock for $declared =~ /(\w+)(?:\[[^\]]*\])*(?=,|$)/g;
    }
    return %guarded;
}

# { name => [line, body, whether others call it, what stands above] }
sub functions
{
    my ($source) = @_;
    my %found;
    my $comment = qr{/\*(?:[^*]|\*(?!/))*\*/}s;
    my $marked = qr/(?:__attribute__\(\(\w+\)\) )?/;
    my $head = qr/$marked(?!typedef|struct \w+\n|#)[a-zA-Z][^;={}\n]*?\b(\w+)\([^{};]*\)/;
    while ($source =~ m/^((?:$comment\n)?)($head)(?: \{([^\n]*)\}$|\s*\{\n(.*?)^\})/msg) {
        my ($above, $declared, $name, $body) = ($1, $2, $3, $4 // $5);
        my $line = 1 + substr($source, 0, $-[2]) =~ tr/\n//;
        $body =~ s{$comment|"[^"\n]*"}{}g;
        $found{$name} = [$line, $body, $declared !~ /^static/, $above];
    }
    return %found;
}

# { function => lock, '->field' => lock } of headers: of functions the next one after a comment with
# "L: dispatcher lock" or "L: memory.mutex"; with "these" all down to the next empty line.
sub needed
{
    my %needs;
    for (@_) {
        while (m{^ +(?!\*)([^()\n]*);\s*/\*[^*]*?\bL: (\w+_(?:lock|mutex)|guard)\b}mg) {
            my ($declared, $lock) = ($1, $2);
            $needs{"->$_"} = $lock for $declared =~ /(\w+)(?:\[[^\]]*\])*(?=,|$)/g;
        }
    }
    for (map { split /\n\n/ } @_) {
        my ($lock, $all, $these) = m{^(?:/\*|\ \*)[^\n]*\ L:\ (dispatcher|memory\.mutex|guard)
            (?:\ lock)?+(?!\ to|,\ or)([^.;]*?\ these)?\b.*?\*/(.*)}xms or next;
        my @names = $these =~ /^\w[^;={}\n]*?\b(\w+)\(/mg;
        $needs{$_} = $lock for $all ? @names : $names[0] // ();
    }
    return %needs;
}

# What others may look at from now on, and a line below what they would find there.
my $published = qr/__atomic_store_n\(&([\w\[\]>.-]+?)(?:\.|->)\w+, [^;]*__ATOMIC_RELEASE\);\n
                   \s+\1(?:\.|->)(\w+)/x;
# What acts on a counter of this CPU: where an IRQL is raised for it, there and nowhere else.
my $counters = qr/\b(pmu_(?:write|program|start|stop|clear|rearm|read))\(/;

# Each function that touches what is guarded without the lock, or calls what needs it, of this file
# or of headers.
sub faults
{
    my ($source, %outer) = @_;
    my %lock = guarded($source);
    my @locks = $source =~ /^static struct (?:lock|mutex) (\w+)/mg;
    for my $field (grep { /^->/ } keys %outer) {
        $lock{$field} = $outer{$field} if grep { $_ eq $outer{$field} } @locks;
    }
    my %touch = map { ($_ => /^->(\w+)/ ? qr/(?:->|\.)$1\b/ : qr/(?<![.>])\b$_\b/) } keys %lock;
    my %of = functions($source);
    my (%keeps, %has, %needs, %taken, %callers, %beside, $holds, @faults);
    for my $name (keys %of) {
        my (undef, $code, undef, $above) = @{ $of{$name} };
        my $locks = $code =~ s/->/./gr =~ s/\bsched_lock\(/lock_acquire(&dispatcher)/gr
            =~ s/\betw_enter\(/lock_acquire(&guard)/gr =~ s/\betw_leave\(/lock_release(&guard/gr
            =~ s/\b(?:sched_unlock|\w+_locked)\(/lock_release(&dispatcher /gr;
        my @taken = $locks =~ /(?:lock|mutex)_acquire\(&(?:\w+\.(?=\w+\.))?([\w.]+)\)/g;
        for my $lock (@taken) {
            $taken{$lock} = 1;
            my $inside = qr/_acquire\(&(?:\w+\.)?\Q$lock\E\).*_release\(&(?:\w+\.)?\Q$lock\E\b/s;
            $beside{$name}{$lock} = $locks =~ s/&\w+|= \w+;//gr if $locks =~ s/$inside//;
        }
        $keeps{$name} = [grep { $locks !~ /_release\(&[\w.]*\Q$_\E\b/ } @taken];
        $needs{$name} = [$above =~ /\bL: (?:the )?([\w.]*\w)\b(?! to\b|:)/g]; # `L: lock: why not`
        $has{$name} = { map { $_ => 1 } @taken, $outer{$name} // (),
                        $above =~ /\bL: (?:the )?([\w.]*\w)/g };
        push @{ $callers{$_} }, $name for grep { $of{$_} || $outer{$_} } $code =~ /\b(\w+)\(/g;
    }
    for my $callee (keys %callers) {
        for my $caller (@{ $callers{$callee} }) {
            $has{$caller}{$_} = 1 for @{ $keeps{$callee} };
        }
    }
    $holds = sub {
        my ($name, $lock, $seen) = @_;
        return 1 if $has{$name}{$lock} || $seen->{$name}++;
        return 0 if $of{$name}[2] || $source =~ /[,{=&(]\s*$name\s*[,})]/;
        return $callers{$name} && !grep { !$holds->($_, $lock, $seen) } @{ $callers{$name} };
    };
    # Who calls what needs it and does not take it needs it, too.
    my @new = map { [$_, $outer{$_} // (), @{ $needs{$_} // [] }] } keys %callers;
    while (my $next = shift @new) {
        my ($callee, @locks) = @$next;
        for my $caller (grep { !$of{$_}[2] } @{ $callers{$callee} // [] }) {
            my @more = grep { !$has{$caller}{$_}++ } @locks;
            push @{ $needs{$caller} }, @more;
            push @new, [$caller, @more] if @more;
        }
    }
    for my $name (sort keys %of) {
        my $code = $of{$name}[1] =~ s/__atomic_\w+\(&\w+//gr;
        push @faults, map { "$of{$name}[0]: $name touches $_ without $lock{$_}" }
            grep { $code =~ $touch{$_} && !$holds->($name, $lock{$_}, {}) } sort keys %lock;
        push @faults, map { "$of{$name}[0]: $name touches $_ beside $lock{$_}" }
            grep { ($beside{$name}{ $lock{$_} } // '') =~ $touch{$_} } sort keys %lock;
    }
    for my $callee (sort keys %callers) {
        for my $lock ($outer{$callee} // (), grep { $taken{$_} } @{ $needs{$callee} }) {
            push @faults, map { "$of{$_}[0]: $_ calls $callee without $lock" }
                grep { !$holds->($_, $lock, {}) } sort @{ $callers{$callee} };
            push @faults, map { "$of{$_}[0]: $_ calls $callee beside $lock" }
                grep { ($beside{$_}{$lock} // '') =~ /\b$callee\(/ } sort @{ $callers{$callee} };
        }
    }
    for my $name (sort keys %of) {
        my ($line, $code) = @{ $of{$name} };
        push @faults, map { "$line: $name calls $_ without the IRQL that it raises" }
            $code =~ s/irql_raise\((?:PROFILE|HIGH|IPI)_LEVEL\).*irql_lower\(//sr =~ $counters
            if $code =~ /irql_raise/;
        push @faults, "$line: $name writes $1->$2 after it has published $1"
            while $code =~ /$published[^\n]* = /g;
        while ($code =~ /driver_enter\(&\w+, ([\w.>-]+)\);(.*?)driver_leave\(/sg) {
            my ($driver, $inside) = ($1, $2);
            push @faults, "$line: $name calls $driver beside driver_enter"
                if $inside !~ /\b\Q$driver\E\(/;
        }
        while ($code =~ /\b(\w+) = (\w+)\(/g) {
            my ($found, $by) = ($1, $2);
            for my $lock ($outer{$by} // (), @{ $needs{$by} // [] }) {
                next if $code !~ /_release\(&[\w.>-]*\Q$lock\E\b(.*)/s;
                push @faults, "$line: $name looks at $found, which $lock guards, without it"
                    if $1 =~ /(?<![\w.>])$found->/;
            }
        }
    }
    return (@faults, map { after_release($_, @{ $of{$_} }) } sort keys %of);
}

# What is used after it was given back, in the lines that follow at the same depth.
my $gives = qr/(?:object_release|phys_free|pool_free|etw_free|release_objects)\(&?/;
sub after_release
{
    my ($name, $line, $code) = @_;
    my @found;
    while ($code =~ /^( *)$gives([][\w>.-]+)[^\n]*\);\n((?:\1 *[^ \n}][^\n]*\n)+)/mg) {
        my ($indent, $what, $after) = ($1, $2, $3);
        pos($code) = $-[3];
        $what =~ s/->object$//;
        $after =~ s/^$indent(?:return|break|continue|goto)\b([^\n]*\n).*/$1/ms;
        $after =~ s/(?<![\w.>*])\Q$what\E = .*//s;
        push @found, "$line: $name uses $what, which it gave back"
            if $after =~ /(?<![\w.>])\Q$what\E(?!\w)/;
    }
    return @found;
}

1;
