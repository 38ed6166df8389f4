# SPDX-License-Identifier: MIT
# Which of a file's functions touch what a lock of the file guards ("L: lock" behind a variable)
# and have not the lock: they take it, or call what takes it and keeps it, or all that call them
# have it. What others call says "L: lock" above if they must have it, or why none is needed.
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
    my $head = qr/(?!typedef|struct \w+\n|#)[a-zA-Z][^;={}\n]*?\b(\w+)\([^{};]*\)/;
    while ($source =~ m/^((?:$comment\n)?)($head)(?: \{([^\n]*)\}$|\s*\{\n(.*?)^\})/msg) {
        my ($above, $declared, $name, $body) = ($1, $2, $3, $4 // $5);
        my $line = 1 + substr($source, 0, $-[2]) =~ tr/\n//;
        $body =~ s{$comment|"[^"\n]*"}{}g;
        $found{$name} = [$line, $body, $declared !~ /^static/, $above];
    }
    return %found;
}

# Each function that touches what is guarded without the lock.
sub faults
{
    my ($source) = @_;
    my %lock = guarded($source);
    my %of = %lock ? functions($source) : ();
    my (%keeps, %has, %callers, $holds, @faults);
    for my $name (keys %of) {
        my (undef, $code, undef, $above) = @{ $of{$name} };
        my @taken = $code =~ /(?:lock|mutex)_acquire\(&(\w+)\)/g;
        $keeps{$name} = [grep { $code !~ /_release\(&$_\b/ } @taken];
        $has{$name} = { map { $_ => 1 } @taken, $above =~ /\bL: (\w+)/g };
        push @{ $callers{$_} }, $name for grep { $of{$_} } $code =~ /\b(\w+)\(/g;
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
    for my $name (sort keys %of) {
        my $code = $of{$name}[1] =~ s/__atomic_\w+\(&\w+//gr;
        push @faults, map { "$of{$name}[0]: $name touches $_ without $lock{$_}" }
            grep { $code =~ /(?<![.>])\b$_\b/ && !$holds->($name, $lock{$_}, {}) } sort keys %lock;
    }
    return @faults;
}

1;
