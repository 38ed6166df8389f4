# SPDX-License-Identifier: MIT
# Files as text, read and written; what is wrong with one of ours, for tests/tools/check.t.
package Text;
use strict;
use warnings;

sub lines
{
    my ($file) = @_;
    open my $in, '<', $file or return ();
    return <$in>;
}

# All of a file; '' if it cannot be read.
sub content { return join '', lines(@_) }

# Writes a file; its name.
sub save
{
    my ($file, $text, $mode) = @_;
    open my $out, '>', $file or die "$file: $!\n";
    my $written = print {$out} $text;
    close $out && $written or die "$file: $!\n";
    chmod $mode, $file if $mode;
    return $file;
}

# Tables may be wider than 100 columns, for a row is read as one: between "clang-format off" and
# "on"; the events; .def files; what libpfm4 says; mutants, whose rows quote sources. So may
# Markdown, which is read rendered. In a table's file comments are text nevertheless.
sub may_be_wide
{
    my ($file) = @_;
    return $file =~ m{\.(?:md|def)$|^pmu/events/|^tests/mutants/
                     |^tests/pmu/libpfm/(?:sources|differences|pmus)$}x;
}

sub too_wide
{
    my ($file) = @_;
    my ($n, $table, @wrong) = (0, may_be_wide($file));
    my $has_tables = $file =~ /\.(?:c|h|cpp|asm|inc)$/;
    for (lines($file)) {
        $n++;
        $table = $1 eq 'off' if $has_tables && /clang-format (off|on)/;
        next if length() <= 101 || ($table && !(/^# / && $file !~ /\.md$/));
        push @wrong, "$file:$n: " . (length() - 1) . ' columns, 100 are allowed';
    }
    return @wrong;
}

sub faults
{
    my ($file) = @_;
    my @lines = lines($file) or return "$file: missing or empty";
    my @wrong;
    push @wrong, "$file: no SPDX line"
        if $file !~ /\.md$/ && !grep { /SPDX-License-Identifier: MIT/ } @lines[0 .. (@lines > 1)];
    my $n = 0;
    for (@lines) {
        $n++;
        push @wrong, "$file:$n: not ASCII" if /[^\t\n\x20-\x7e]/;
        push @wrong, "$file:$n: white space at the end" if /[ \t]\n/;
        push @wrong, "$file:$n: tab" if /\t/ && $file !~ /Makefile|\.mk$/;
        push @wrong, "$file:$n: unfinished: write a skipped test" if /\b(TO[D]O|FIX[M]E|XX[X])\b/;
        push @wrong, "$file:$n: a comment begins with 'The same': say what is"
            if m{(?:/\*|//|^\s*[#;])\s*The same\b};
        push @wrong, "$file:$n: #if" if /^\s*#\s*if/ && $file !~ m{^kernel/user/};
    }
    return (@wrong, too_wide($file));
}

# What a comment or a document sends its reader to: a file of ours with its room, or by its name
# alone.
sub citation_faults
{
    my ($file, $names) = @_;
    my ($n, @wrong) = 0;
    for (lines($file)) {
        $n++;
        my @with_room =
            m{(?<![\w./*-])((?:boot|kernel|hal|pmu|tests|spec)/[\w./-]*\w\.(?:c|h|asm|t|pm|md))\b}g;
        my @alone = m{(?<![\w./*\$%-])([a-z]\w*\.(?:c|asm|t|pm|md))\b(?!['"(.]|-\d)}g;
        push @wrong, "$file:$n: there is no $_"
            for (grep { !-f } @with_room), grep { !$names->{$_} } @alone;
    }
    return @wrong;
}

# Links of a page to files of ours.
sub link_faults
{
    my ($file) = @_;
    my ($n, @wrong) = 0;
    my ($folder) = $file =~ m{^(.*/)} ? $1 : '';
    for (lines($file)) {
        $n++;
        push @wrong, "$file:$n: there is no $_"
            for grep { !/^\w+:/ && !-e "$folder$_" } m{\]\(([^)#]+)[^)]*\)}g;
    }
    return @wrong;
}

# The first comment of a script.
sub first_comment
{
    my @comment;
    for (lines($_[0])) {
        last if !/^#/;
        push @comment, $_;
    }
    return @comment;
}

# Commands stand in back quotes, after a prompt, or in a line of their own, two spaces before what
# they mean.
sub commands
{
    local $_ = $_[0];
    return /^ {4}((?:make|tests\/).*?)(?: {2}|\n)/ || /^\$ (.*)/ ? $1 : /`([^`]+)`/g;
}

# What a page names and nobody knows: targets of make, variables, scripts in tests/.
sub command_faults
{
    my ($file, $known) = @_;
    my ($n, @wrong) = 0;
    for (lines($file)) {
        $n++;
        for my $command (commands($_)) {
            (my $plain = $command) =~ s/'[^']*'|"[^"]*"//g;
            my @words = $plain =~ /^make\b(?: ([A-Za-z].*))?/ ? split / +/, $1 // '' : ();
            push @words, $plain =~ /\b([A-Z][A-Z0-9_]+=)/g if !@words;
            push @wrong, "$file:$n: there is no " . s/=.*//r
                for grep { !$known->{ s/=.*//r } } @words;
            push @wrong, "$file:$n: there is no $_"
                for grep { !-e } $plain =~ m{(?<![\w./-])(tests/[\w./-]*\w)(?![\w*<])}g;
        }
    }
    return @wrong;
}

# Is that the beginning of a function, or a label, of the file?
sub defines
{
    my ($file, $name) = @_;
    return grep { /^\Q$name\E:/ || (/^[A-Za-z].*\b\Q$name\E\(/ && !/;$/)
                  || /^[A-Za-z].*\b\Q$name\E\(.*\}$/ } lines($file);
}

# The names of a C file's static functions.
sub static_functions
{
    my %found;
    for (lines($_[0])) {
        s/__attribute__\(\((?:[^()]|\([^()]*\))*\)\)\s*//g;
        $found{$1} = 1 if /^static\b[^=;(]*\b(\w+)\(/;
    }
    return keys %found;
}

# Functions and variables that a header declares and other files define.
sub declared
{
    my $text = join '', lines($_[0]);
    $text =~ s{/\*.*?\*/}{}gs;
    $text =~ s{^#(?:.*\\\n)*.*\n|__attribute__\(\((?:[^()]|\([^()]*\))*\)\)}{}gm;
    1 while $text =~ s/\{[^{}]*\}/;/g;
    1 while $text =~ s/(\bextern [^;,(]*?)([\w\[\]]+),/$1$2; $1/;
    return map {
        /^extern\b.*\(\*(\w+)/s || /^extern\b.*?(\w+)\s*(?:\[[^]]*\]\s*)*$/s
            || /^(?!static|typedef|_Static)\w[\w*\s]*?\b(\w+)\s*\(/ ? $1 : ()
    } map { s/^\s+//r } split /;/, $text;
}

# How many lines each function of a C file has between its braces.
sub function_lengths
{
    my ($file) = @_;
    my ($n, $begin, @lengths) = (0, 0);
    for (lines($file)) {
        $n++;
        push @lengths, 1 if /^\w.*\) \{.*\}$/;
        $begin = $n if /^\{$/;
        push @lengths, $n - $begin - 1 if /^\}$/ && $begin;
        $begin = 0 if /^\}/;
    }
    return @lengths;
}

1;
