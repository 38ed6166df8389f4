# SPDX-License-Identifier: MIT
# The page that tests/tools/report makes of logs: one file, no script, nothing from a network.
# Everything that comes from a log passes through Picture::escape.
package Page;
use strict;
use warnings;
use List::Util qw(uniq);
use Picture;

my $style = <<'END';
body { font: 15px/1.4 sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; color: #222; }
table { border-collapse: collapse; margin: .5em 0; }
th, td { border: 1px solid #ccc; padding: .2em .6em; text-align: left; vertical-align: top; }
th { background: #f2f2f2; font-weight: 600; }
pre { background: #f7f7f7; padding: .6em; overflow-x: auto; }
summary { cursor: pointer; padding: .15em 0; }
small { color: #666; } p.id { margin: 0; color: #555; }
svg text { font: 12px sans-serif; fill: #222; }
.PASS { background: #cfeccf; } .NONE { background: #f8ecb8; }
.FAIL, .CRASH, .HANG { background: #f6c6c6; }
td.failed { background: #f6c6c6; } td.skipped { color: #888; } td.absent { color: #bbb; }
rect.beyond { fill: #bbb; }
.c0 { fill: #3366aa; } .c1 { fill: #dd8833; } .c2 { fill: #339977; } .c3 { fill: #aa3377; }
.c4 { fill: #777722; } .c5 { fill: #6644bb; } .c6 { fill: #22aabb; } .c7 { fill: #884422; }
.c8 { fill: #999999; } .c9 { fill: #dd5577; }
END

use constant {
    WHOLE => 'all came, by length and checksum',
    TORN  => 'not proven: the run did not end',
    CODE  => 'none: this is what the QR code on its last page says',
    GREY  => "<p>Grey: at least so many; the interrupt came after the watched code.</p>\n",
    UNLISTED => "<p>No image was here to say what each test proves.</p>\n",
};

my $policy = "default-src 'none'; style-src 'unsafe-inline'";

sub e { return Picture::escape($_[0]) }

sub cell { return sprintf '<td%s>%s</td>', $_[1] ? qq( class="$_[1]") : '', e($_[0]) }

sub row
{
    my ($head, @cells) = @_;
    return '<tr><th>' . e($head) . '</th>' . join('', @cells) . "</tr>\n";
}

sub table { return "<table>\n", @_, "</table>\n" }

sub heads { return map { '<th>' . e($_->{label}) . '</th>' } @{ $_[0] } }

sub legend
{
    my @logs = @_;
    my @marks = map { Picture::mark($_) . ' ' . e($logs[$_]{label}) } 0 .. $#logs;
    return '<p>' . join(' &#160; ', @marks) . "</p>\n";
}

# --- The machines, side by side.

sub fact
{
    my ($log, $name) = @_;
    return join '; ', map { $_->{text} } grep { $_->{name} eq $name } @{ $log->{facts} };
}

sub kind_rows
{
    my ($logs) = @_;
    my ($most) = sort { $b <=> $a } map { scalar @{ $_->{kinds} } } @$logs;
    my @rows;
    for my $k (0 .. ($most // 0) - 1) {
        for my $field (qw(pmu measured)) {
            my $head = $field eq 'pmu' ? 'PMU' : 'measured';
            $head .= ', kind ' . ($k + 1) if $most > 1;
            push @rows, row($head, map { cell(($_->{kinds}[$k] // {})->{$field} // '') } @$logs);
        }
    }
    return @rows;
}

sub machines
{
    my ($logs) = @_;
    my @names = uniq map { map { $_->{name} } @{ $_->{facts} } } @$logs;
    my @numbers = qw(planned passed failed skipped checks);
    return (
        "<h2>Machines</h2>\n",
        table(
            row('log', map { cell($_->{file}) } @$logs),
            row('verdict', map { cell($_->{verdict}, $_->{verdict}) } @$logs),
            row('last lines', map { cell(join ' ', @{ $_->{says} }) } @$logs),
            row('bytes', map { cell($_->{whole} ? WHOLE : $_->{code} ? CODE : TORN) } @$logs),
            map({ my $n = $_; row($n, map { cell($_->{$n}) } @$logs) } @numbers),
            map({ my $n = $_; row($n, map { cell(fact($_, $n)) } @$logs) } @names),
            kind_rows($logs),
            row('remarks', map { cell(join ' ', @{ $_->{remarks} }) } @$logs),
        ),
    );
}

# --- Results.

# What a test proves: its meaning, then the sentences of the contract.
sub proves
{
    my ($report, $name) = @_;
    my $about = $report->{tests}{$name};
    my @sentences = map { e("$_: $report->{contract}{$_}") } @{ $about->{contract} };
    return join '', e($about->{proves} // ''), map { qq(<p class="id">$_</p>) } @sentences;
}

sub failures
{
    my ($report, $log) = @_;
    my @failed = grep { $_->{result} eq 'failed' } @{ $log->{tests} };
    my @parts = map {
        ('<h3>' . e($_->{name}) . "</h3>\n", '<div>' . proves($report, $_->{name}) . "</div>\n",
         @{ $_->{lines} } ? '<pre>' . e(join "\n", @{ $_->{lines} }) . "</pre>\n" : ())
    } @failed;
    my @last = $log->{whole} ? () : @{ $log->{unfinished} };
    push @parts, "<h3>What the machine said last</h3>\n", '<pre>' . e(join "\n", @last) . "</pre>\n"
        if @last;
    return @parts ? ('<h2>Failures: ' . e($log->{label}) . "</h2>\n", @parts) : ();
}

sub skips
{
    my ($logs) = @_;
    my (%by, %all);
    for my $i (0 .. $#$logs) {
        my @skipped = grep { $_->{result} eq 'skipped' } @{ $logs->[$i]{tests} };
        push @{ $by{ $_->{reason} }{$i} }, $_->{name} for @skipped;
    }
    for my $reason (keys %by) {
        $all{$reason} += @$_ for values %{ $by{$reason} };
    }
    my @reasons = sort { $all{$b} <=> $all{$a} || $a cmp $b } keys %by or return;
    return (
        "<h2>Skips by reason</h2>\n",
        table(
            row('', heads($logs)),
            map {
                my $names = $by{$_};
                row($_, map { skip_cell(@{ $names->{$_} // [] }) } 0 .. $#$logs)
            } @reasons
        ),
    );
}

sub skip_cell
{
    my (@names) = @_;
    return '<td></td>' if !@names;
    my $n = @names;
    return "<td><details><summary>$n</summary>" . e(join ' ', @names) . '</details></td>';
}

sub group_of { return $_[0] =~ /^([^.]*)/ ? $1 : $_[0] }

sub sum_of
{
    my %n;
    $n{$_}++ for @_;
    return join(', ', map { "$n{$_} $_" } grep { $n{$_} } qw(passed failed skipped)) || 'none';
}

sub result_cell
{
    my ($test) = @_;
    return '<td class="absent">-</td>' if !$test;
    my @notes = $test->{result} eq 'passed' ? @{ $test->{lines} } : ();
    my $notes = @notes ? '<br><small>' . join('<br>', map { e($_) } @notes) . '</small>' : '';
    my $why = $test->{result} eq 'skipped' ? ': ' . e($test->{reason}) : '';
    return "<td class=\"$test->{result}\">$test->{result}$why$notes</td>";
}

# Every test once, with a column for each log.
sub results
{
    my ($report) = @_;
    my $logs = $report->{logs};
    my @of = map { my %t = map { $_->{name} => $_ } @{ $_->{tests} }; \%t } @$logs;
    my %group;
    my @all = uniq map { map { $_->{name} } @{ $_->{tests} } } @$logs;
    push @{ $group{ group_of($_) } }, $_ for @all;
    my @parts = "<h2>Results by group</h2>\n";
    for my $group (sort keys %group) {
        my @names = @{ $group{$group} };
        my @sums = map { my $of = $_; sum_of(map { $_->{result} } grep { $_ } @$of{@names}) } @of;
        my $open = grep({ /failed/ } @sums) ? ' open' : '';
        my $head = '<b>' . e($group) . '</b> ' . e(join ' | ', @sums);
        push @parts, "<details$open><summary>$head</summary>\n",
            table(
                row('', '<th>proves</th>', heads($logs)),
                map {
                    my $name = $_;
                    my $proves = '<td>' . proves($report, $name) . '</td>';
                    row($name, $proves, map { result_cell($_->{$name}) } @of);
                } @names
            ),
            "</details>\n";
    }
    return @parts;
}

# --- Pictures, where a log has the numbers.

sub pictures
{
    my ($logs) = @_;
    my @costs = Picture::costs(@$logs);
    my @parts = @costs ? ("<h2>Costs in instructions</h2>\n", legend(@$logs), @costs) : ();
    for my $i (0 .. $#$logs) {
        my ($m, $short) = ($logs->[$i]{measured}, e($logs->[$i]{label}));
        push @parts, "<h2>Profile, $short: samples " . e($_->{title}) . "</h2>\n", $_->{svg}
            for Picture::samples($i, @{ $m->{samples} });
        my @sure = map { @{ $_->{instructions} } } @{ $m->{skid} };
        my @beyond = map { @{ $_->{beyond} } } @{ $m->{skid} };
        my @skid = Picture::distribution($i, \@sure, \@beyond);
        push @parts, "<h2>Skid, $short: instructions from overflow to interrupt</h2>\n", GREY, @skid
            if @skid;
        my @over = Picture::overcounts($i, @{ $m->{overcount} });
        push @parts, "<h2>Overcount, $short: instructions too many in ring 3</h2>\n", @over
            if @over;
    }
    return @parts;
}

# --- Traces.

sub stacks
{
    my ($trace) = @_;
    my @stacks = @{ $trace->{stacks} } or return ();
    return ('<h2>Trace ' . e($trace->{label}) . ": stacks, the newest address first</h2>\n",
            table(map { row("$_->{times} times", cell(join ' ', @{ $_->{addresses} })) } @stacks));
}

sub traces
{
    return map {
        my $picture = Picture::time_line($_);
        my %n = %{ $_->{events} };
        my $says = join ', ', map { "$n{$_} $_" } sort keys %n;
        $says .= "; $_->{not_shown} more than can be shown" if $_->{not_shown};
        ('<h2>Trace ' . e($_->{label}) . ': what ran when</h2>' . "\n", $picture->{svg},
         $picture->{legend},
         '<p>' . e($says) . "</p>\n", stacks($_))
    } @_;
}

sub make
{
    my ($report) = @_;
    my $logs = $report->{logs};
    my %n;
    $n{ $_->{verdict} }++ for @$logs;
    my $title = e('ntpmu: ' . (join(', ', map { "$n{$_} $_" } sort keys %n) || 'a trace'));
    return join '',
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
        qq(<meta http-equiv="Content-Security-Policy" content="$policy">\n),
        "<title>$title</title>\n<style>\n$style</style>\n</head>\n<body>\n<h1>$title</h1>\n",
        (@$logs ? (machines($logs), map({ failures($report, $_) } @$logs), skips($logs),
                   pictures($logs)) : ()),
        traces(@{ $report->{traces} }),
        (@$logs ? (results($report), $report->{listed} ? '' : UNLISTED) : ()),
        "</body>\n</html>\n";
}

1;
