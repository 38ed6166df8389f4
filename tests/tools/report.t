#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# tests/tools/report: pages and JSON of logs made here, hostile ones among them, and of a real run.
# A page is read tag by tag.
use strict;
use warnings;
use Test::More;
use Compress::Raw::Zlib 'crc32';
use Cwd 'abs_path';
use File::Temp 'tempdir';
use JSON::PP;
use lib 'tests/tools';
use Environment;
use RunLog;
use Text;

my $dir = tempdir(CLEANUP => 1);
my $build = $ENV{BUILD} // 'build';
Environment::forget(qw(LOG));
$ENV{BUILD} = $dir;

sub file { return Text::save("$dir/" . shift, @_) }
sub text_of { return Text::content("$dir/$_[0]") }

sub run_it
{
    my ($command) = @_;
    my $output = `$command 2>&1 </dev/null`;
    return ($? >> 8, $output);
}

# --- The page: every tag and attribute is one of ours, all are closed, text has no other.

my %attributes = (
    html => 'lang', meta => 'charset http-equiv content', td => 'class', p => 'class',
    details => 'open', svg => 'width height role', rect => 'x y width height class',
    text => 'x y text-anchor',
    map { $_ => '' } qw(head title style body h1 h2 h3 table tr th pre b br small summary div),
);

sub page_faults
{
    my ($page) = @_;
    my (@open, @wrong);
    $page =~ s/^<!DOCTYPE html>\n// or push @wrong, 'no doctype';
    push @wrong, 'not ASCII' if $page =~ /[^\n\x20-\x7e]/;
    push @wrong, 'a script or an address'
        if $page =~ m{<script|<[^>]*(?:https?:|src=|href=)|url\(|\x40import}i;
    while ($page =~ m{\G([^<]*)<(/?)([a-z0-9]+)((?: [a-z-]+(?:="[^"<>]*")?)*)>}gc) {
        my ($text, $close, $tag, $rest) = ($1, $2, $3, $4);
        push @wrong, "text: $text" if $text =~ />|&(?!amp;|lt;|gt;|quot;|#39;|#160;)/;
        my $known = $attributes{$tag};
        push @wrong, "<$tag>" if !defined $known;
        push @wrong, map { "<$tag $_>" } grep { (" $known ") !~ / $_ / } $rest =~ / ([a-z-]+)/g
            if defined $known && $tag ne 'meta';
        next if $tag =~ /^(?:meta|br)$/;
        push @wrong, "<$tag> in <p>" # which ends there, says HTML
            if !$close && $tag =~ /^(?:p|pre|div|table|details|h\d)$/ && grep { $_ eq 'p' } @open;
        push @open, $tag if !$close;
        push @wrong, "</$tag>" if $close && (pop @open // '') ne $tag;
    }
    my $left = substr $page, pos $page // 0;
    push @wrong, 'from here on: ' . substr $left, 0, 80 if $left ne "\n";
    push @wrong, "open: @open" if @open;
    return @wrong > 5 ? @wrong[0 .. 4] : @wrong;
}

# --- The data: each field is one of the table's, of its type, and none is missing.

my %fields; # of a structure: type by name
for (Text::lines('tests/tools/report-fields')) {
    my ($structure, $field, $type) = /^(\w+) +(\w+) +(\S+)/ or next;
    $fields{$structure}{$field} = $type;
}
my %is = (text => qr/^"/, count => qr/^\d+\z/, integer => qr/^-?\d+\z/, number => qr/^[\d.e-]+\z/,
          bool => qr/^(?:true|false)\z/);

sub faults
{
    my ($value, $type, $at) = @_;
    if ($type =~ s/\[\]$//) {
        return "$at is no list" if ref $value ne 'ARRAY';
        return map { faults($value->[$_], $type, "$at\[$_]") } 0 .. $#$value;
    }
    return structure_faults($value, $fields{$type}, $at) if $fields{$type};
    return map { faults($value->{$_}, $type, "$at.$_") } sort keys %$value if $type =~ s/\{\}$//;
    my $text = JSON::PP->new->allow_nonref->encode($value);
    my $pattern = $type =~ /^'(.*)'$/ ? qr/^"(?:$1)"\z/ : $is{$type};
    return $text =~ $pattern ? () : "$at is $text, no $type";
}

sub structure_faults
{
    my ($value, $fields, $at) = @_;
    return "$at is no object" if ref $value ne 'HASH';
    my @wrong = map { "$at.$_ is unknown" } grep { !$fields->{$_} } sort keys %$value;
    for (sort keys %$fields) {
        my $type = $fields->{$_};
        my $optional = $type =~ s/\?$//;
        push @wrong, exists $value->{$_} ? faults($value->{$_}, $type, "$at.$_")
            : $optional ? () : "$at has no $_";
    }
    return @wrong > 5 ? @wrong[0 .. 4] : @wrong;
}

sub json_faults { return faults($_[0], 'report', 'report') }

# --- Logs. What the kernel counts lies between its first line and its last.

sub log_of
{
    my ($facts, $tests, $verdict, $after) = @_;
    my ($n, %n) = (0, passed => 0, failed => 0, skipped => 0);
    my $body = $facts . "TAP version 13\n1.." . (() = $tests =~ /^(?:not )?ok /mg) . "\n";
    for (split /^/, $tests) {
        $n{$1 ? 'failed' : $3 ? 'skipped' : 'passed'}++ if /^(not )?(ok )(?:.*( # SKIP))?/;
        $body .= s/^((?:not )?ok) /"$1 " . ++$n . ' - '/er;
    }
    $body .= "# $n{passed} passed, $n{failed} failed, $n{skipped} skipped, 9 checks\n";
    my $sum = sprintf '[%d bytes, crc32 %08x]', length $body, crc32($body);
    return "# machine: QEMU tcg\n\n# ntpmu: begin\n$body# $verdict $sum\n" . ($after // '');
}

my $facts = <<'END';
# cpu: 12th Gen <b>Core</b> (GenuineIntel family 6h)
# pmu: CPUs 0,2: intel version 5, 8 counters of 48 bits, 4 fixed of 48; Golden Cove: all count
# measured: traps add nothing to ring 3
# pmu: CPUs 1,3: intel version 5, 6 counters of 48 bits, 3 fixed of 48; Gracemont: all count
# measured: traps add 1
END
my $tests = <<'END';
# cost: 3 counters: 47 instructions
# cost: a hook nobody wants: 3 instructions, 0 RDPMC, 0 RDMSR, 0 WRMSR
# cost: a hook nobody wants: 5 instructions, 0 RDPMC, 0 RDMSR, 0 WRMSR
# cost: a hook nobody wants: 4 instructions, 0 RDPMC, 0 RDMSR, 0 WRMSR
# cost: a switch: 76 instructions, 4 RDPMC, 0 RDMSR, 1 WRMSR; cycles 80, 81, 99
ok hal_pmc_sets.cost
# skid: 3 instructions
# skid: 900 instructions or more: after the sled
ok pmu_cpuid.vendor
# 40 regions, 38 of them exact; instructions too many: -1 to 2
ok exact.regions # SKIP traps add to ring 3's counts
# by time, every 122 us, 287 samples
#   hot_mix    ##############################                      60 %
#   hot_add    ############                                        24 %
ok profile_picture.by_time
# tests/harness/test.c:7: x = 1, want 2
not ok tp_config.full
END
my $hostile = <<'END';
# cpu: </td></table><script>alert(1)</script>" onload='x'
# <img src=x onerror=alert(1)>: <&>
ok <script>alert(2)</script>.a"b'c
# by <svg/onload=alert(3)>, 999999999999999999999 samples
#   "><script> ######## 999 %
# by none, 9 samples
#   more_than_all ######## 999 %
# 99999999999999999999999 counters: 999999999999999999999999999 instructions
# cost: 7 counters: 999999999999999 instructions
# cost: <b>: 99999999999999999999 instructions
# skid: -999999999999999 instructions
# skid: 999999999999999 instructions
ok x.]]>-->&lt;</style> # SKIP </summary><iframe src="http://example.com">
END
my $good = file('good.log', log_of($facts, $tests, 'FAIL 1 of 5 tests'));
my $bad = file('hostile.log', log_of((split /^(?=ok )/m, $hostile, 2), "PASS </title><script>"));

# --- Refusals. Nothing is made of a log that is not whole.

sub refused
{
    my ($name, $text, $says) = @_;
    my $log = file('refused.log', $text);
    file('report.html', 'old');
    my ($status, $output) = run_it("tests/tools/report $good $log");
    ok($status == 99 && $output =~ /refused.log is refused: $says/ && !-e "$dir/report.html",
       "refused: $name") or diag("$status: $output");
}

my $whole = text_of('good.log');
refused('a lost line', $whole =~ s/# skid: 3.*\n//r, qr/the kernel sent/);
refused('a torn end', $whole =~ s/ bytes, crc.*//sr, qr/the verdict line is missing/);
refused('no checksum', $whole =~ s/ \[\d+ bytes.*\]//r, qr/the verdict line is missing/);
refused('a lost begin', $whole =~ s/# ntpmu: begin\n//r, qr/there is no line "# ntpmu: begin"/);
refused('what the runner found broken', "$whole# BROKEN no such end\n", qr/no such end/);
refused('a program', "# ntpmu: begin\n# PASS the program ended with 0\n", qr/there is no plan/);
refused('a log too long', $whole . "\n" x RunLog::SIZE_MAX, qr/longer than any log/);
refused('nothing', '', qr/there is no line/);
refused('no log', join('', map { chr } 0 .. 255) x 1000, qr/there is no line/);

# Every byte that the kernel counted, lost or changed; each seventh stands for all.
{
    my ($first, $last) = (index($whole, "begin\n") + 6, index($whole, '# FAIL'));
    my @taken;
    for (my $at = $first; $at < $last; $at += 7) {
        my ($lost, $changed) = ($whole) x 2;
        substr $lost, $at, 1, '';
        substr $changed, $at, 1, substr($changed, $at, 1) ^ "\x01";
        push @taken, $at if grep { (RunLog::load(file('byte.log', $_)))[0] } $lost, $changed;
    }
    is("@taken", '', 'no byte between the first line and the last can be lost or changed');
}

file('refused.log', $whole . $whole);
for (['tests/tools/report /nowhere.log', 2], ['tests/tools/report /', 2],
     ["tests/tools/report $dir/refused.log", 99]) {
    my ($status, $output) = run_it($_->[0]);
    ok($status == $_->[1] && $output =~ /^(?:usage|tests)[^\n]*\n\z/, "wrong use: $_->[0]")
        or diag("$status: $output");
}

# --- Pages and data.

# A page is too long to be shown where it lacks something.
sub has
{
    my ($page, $what, $name) = @_;
    ok($page =~ $what, $name) or diag("nowhere: $what");
}

# Both files are sound; returns page and data.
sub report
{
    my ($name, @logs) = @_;
    my ($status, $output) = run_it("tests/tools/report @logs");
    is("$status $output", "0 $dir/report.html, $dir/report.json\n", "$name: made");
    my ($page, $data) = (text_of('report.html'), decode_json(text_of('report.json') || '{}'));
    is_deeply([page_faults($page)], [], "$name: the page is closed and has only our tags");
    is_deeply([json_faults($data)], [], "$name: the JSON has the fields of the table");
    return ($page, $data);
}

{
    my ($page, $data) = report('hostile log', $bad);
    has($page, qr/&lt;script&gt;alert\(1\)/, 'a hostile log is shown as it is');
    is($data->{logs}[0]{tests}[0]{name}, q(<script>alert(2)</script>.a"b'c), 'and is in the JSON');
    ok(scalar(page_faults("$page<b>")), 'a page that is not closed is found');
    ok(scalar(page_faults($page =~ s/<h1>/<p><p><\/p><\/p><h1>/r)), 'one that HTML closes, too');
    ok(scalar(page_faults($page =~ s/&lt;/</r)), 'a tag that came through is found');
    $data->{logs}[0]{verdict} = 'MAYBE';
    ok(scalar(json_faults($data)), 'JSON against the table is found');
}
{
    file('ntpmu.bin', 'kernel');
    my $list = 'tp_config.full - the <last> counter [TP-04]\r\npmu_x.gp0 - each counts\r\n';
    $ENV{QEMU} = file('qemu', "#!/bin/sh\nprintf '$list'\nexit 33\n", 0755);
    my ($page, $data) = report('two logs', $good, $bad);
    my $log = $data->{logs}[0];
    is("@$log{qw(verdict passed failed skipped planned label)}", 'FAIL 3 1 1 5 good.log', 'totals');
    my @fields = qw(cpus vendor version counters width fixed events);
    is_deeply([map { "@$_{@fields}" } @{ $log->{kinds} }],
              ['0,2 intel 5 8 48 4 Golden Cove', '1,3 intel 5 6 48 3 Gracemont'], 'each kind');
    has($page, qr{<h3>tp_config\.full</h3>\n<div>the &lt;last&gt; counter<p class="id">TP-04: \w},
         'a failure has what the test proves and its contract');
    has($page, qr{</div>\n<pre># tests/harness/test\.c:7: x = 1, want 2</pre>}, 'and its lines');
    has($page, qr{<th>traps add to ring 3&#39;s counts</th><td><details><summary>1<},
        'skips stand by reason');
    is_deeply([map { "$_->{name} $_->{most}" } @{ $log->{measured}{cost} }],
              ['3 counters 47', 'a hook nobody wants 5', 'a switch 76'],
              'costs: the most of all kinds of CPUs');
    is_deeply([@{ $log->{measured}{cost}[2] }{qw(rdpmc wrmsr cycles)}], [4, 1, [80, 81, 99]],
              'accesses and cycles');
    has($page, qr{<rect[^>]*><title>hal_pmc_sets: 3 counters: 47</title>}, 'costs are bars');
    has($page, qr{<title>hot_mix: 60 %</title>}, 'samples are bars');
    is("@{ $log->{measured}{skid}[0]{instructions} } @{ $log->{measured}{skid}[0]{beyond} }",
       '3 900', 'skids: exact ones, and the least of others');
    has($page, qr{<title>3 to \d+: 1 times</title>}, 'skid is a distribution');
    has($page, qr{"beyond"><title>\d+ to \d+: at least, 1 times</title>}, 'with what is not exact');
    has($page, qr{<title>exact\.regions: -1 to 2; 38 of 40 exact</title>}, 'overcount is a bar');
    has($page, qr{<td class="absent">-</td>}, 'a test that only one log has');
    my $xml = text_of('report.xml');
    is(join(' ', map { scalar(() = $xml =~ /$_/g) } '<testsuite\s', '<testcase ', '<failure '),
       '2 7 1', 'JUnit: tests and failures');
    unlink "$dir/ntpmu.bin";
}
{
    my $torn = $whole =~ s/^ok 4.*//smr . "# HANG no test ended in 9 s; test 3\n";
    my ($page, $data) = report('a run that hung', file('hang.log', $torn));
    is($data->{logs}[0]{verdict}, 'HANG', 'its verdict');
    ok(!$data->{logs}[0]{whole}, 'nothing proves its bytes');
    has($page, qr{What the machine said last</h3>\n<pre># by time}, 'its last lines');
}
{
    my $serial = "\e[2JGRUB\r\n" . $whole =~ s/# machine.*\n//r =~ s/\n/\r\n/gr;
    my ($page) = report('carriage returns and what came before', file('serial.log', $serial));
    ok($page !~ /GRUB/, 'are not in the page');
}
{
    my @ten = map { file("$_.log", $whole) } 0 .. 9;
    my (undef, $data) = report('ten machines', @ten);
    is_deeply([map { $_->{label} } @{ $data->{logs} }], [map { "$_.log" } 0 .. 9], 'side by side');
}

# --- Traces: this one is made by hand, a tick a millisecond.

{
    my $u64 = 'typealias integer { size = 64; align = 8; signed = false;';
    mkdir "$dir/trace";
    file('trace/metadata', <<"END");
/* CTF 1.8 */
$u64 } := u64;
clock { name = tsc; freq = 1000; };
$u64 map = clock.tsc.value; } := tsc_t;
trace { major = 1; minor = 8; byte_order = le; };
stream {
    packet.context := struct {
        tsc_t timestamp_begin; tsc_t timestamp_end; u64 content_size; u64 packet_size; u64 cpu_id;
    };
    event.header := struct { u64 id; tsc_t timestamp; } align(64);
};
event { name = "CONTEXTSWAP"; id = 1; fields := struct { u64 NewThreadId; u64 OldThreadId; }; };
event { name = "IPI"; id = 2; fields := struct { u64 from; u64 to; }; };
typealias integer { size = 64; align = 8; signed = false; base = 16; } := address;
event { name = "STACKWALK"; id = 3; fields := struct { address Stack[2]; }; };
END
    my @events = ([1, 100, 5, 0], [2, 110, 0, 1], [3, 111, 0x1234, 0x7ffb0000], [1, 120, 6, 5],
                  [3, 121, 0xf00, 0xba4], [1, 140, 0, 6], [3, 141, 0xf00, 0xba4], [2, 150, 1, 0]);
    my $bits = 8 * 8 * (5 + 4 * @events);
    file('trace/cpu0', pack 'Q<*', 100, 150, $bits, $bits, 3, map { @$_ } @events);
    my ($page, $data) = report('a log and a trace', $bad, "$dir/trace");
    my $trace = $data->{traces}[0];
    is_deeply($trace->{events}, { CONTEXTSWAP => 3, IPI => 2, STACKWALK => 3 }, 'its events');
    is_deeply($trace->{cpus}, [{ cpu => 3, spans => [[5, 0, 0.02], [6, 0.02, 0.04]],
                                 marks => [0.01, 0.05] }], 'what ran when');
    is_deeply($trace->{threads}, { map { $_ => { switches => 1 } } 0, 5, 6 }, 'its threads');
    has($page, qr{<rect x="60\.0" [^>]*class="c[01]"><title>thread 5: 0\.000000 s to 0\.020000 s<},
        'a picture of it');
    has($page, qr{>CPU 3</text>}, 'for each CPU');
    is_deeply($trace->{stacks}, [{ times => 2, addresses => ['F00', 'BA4'] },
                                 { times => 1, addresses => ['1234', '7FFB0000'] }],
              'stacks, the most frequent first');
    has($page, qr{<th>2 times</th><td>F00 BA4</td>}, 'a table of stacks');
    file('trace/cpu0', 'no trace');
    is((run_it("tests/tools/report $dir/trace"))[0], 99, 'one that cannot be read is refused');
}

# --- QR codes. What the encoder makes is read by zbarimg: of each version the shortest text and the
# longest.

{
    my $made = system("gcc -O1 -Wall -Wextra $Environment::WERROR -fsanitize=undefined "
        . "-fno-sanitize-recover -I. -o $dir/picture tests/tools/picture.c tests/harness/qr.c");
    is($made, 0, 'the encoder for the host');
    my @ends = (17, 32, 53, 78, 106, 134, 154, 192, 230);
    my @texts = map { substr join('', map { chr 33 + $_ * $_ % 89 } 1 .. 300), $_ % 7, $_ }
        map { ($_ ? $ends[$_ - 1] + 1 : 1, $ends[$_]) } 0 .. $#ends;
    for my $n (0 .. $#texts) {
        open my $picture, '-|', "$dir/picture", $texts[$n] or die;
        local $/;
        file(sprintf('%02d.pbm', $n), <$picture>);
    }
    my ($status, $read) = run_it("zbarimg --nodbus -q --raw $dir/??.pbm");
    is_deeply([split /\n/, $read], \@texts,
              'texts of every length that needs another version are read back');
    is(system("$dir/picture", 'x' x 231) >> 8, 1, 'a longer one is refused');
}

sub of_code
{
    my ($text) = @_;
    open my $report, '-|', "tests/tools/report --qr '$text' 2>&1" or die;
    my $output = do { local $/; <$report> // '' };
    close $report;
    return ($? >> 8, $output);
}
{
    my $text = "ntpmu1 FAIL 900/5/75 301693 38209:393a05e5\n0f556219 UEFI 8192M 16 Microsoft Hv\n"
        . "6.97.2 intel5 8x48+4x48 tp_config.full a.b +3\n12th Gen <Core>";
    my ($status, $output) = of_code($text);
    is($status, 0, 'a report of a QR code') or diag($output);
    my ($page, $data) = (text_of('report.html'), decode_json(text_of('report.json') || '{}'));
    is_deeply([page_faults($page)], [], 'its page is sound');
    is_deeply([json_faults($data)], [], 'its JSON too');
    my $log = $data->{logs}[0];
    is("@$log{qw(verdict passed failed skipped planned checks)}", 'FAIL 900 5 75 980 301693',
       'its totals');
    is("@{$log->{kinds}[0]}{qw(vendor version counters width fixed)}", 'intel 5 8 48 4', 'its PMU');
    is(join(' ', map { $_->{name} } @{ $log->{tests} }), 'tp_config.full a.b', 'what failed');
    has($page, qr{3 more tests failed}, 'and what does not fit');
    has($page, qr{<td>none: this is what the QR code}, 'that no log proves it');
    has($page, qr{12th Gen &lt;Core&gt; \(family 6h model 97h stepping 2h\)}, 'its CPU');
    is((of_code($_))[0], 99, 'refused: ' . substr $_, 0, 50)
        for $text =~ s/\+3/+2/r, $text =~ s/FAIL/PASS/r, $text =~ s/ntpmu1/ntpmu2/r,
        $text =~ s/38209:/38209/r, $text =~ s/ Microsoft Hv.*//sr, '', 'x' x 1000;
    is((run_it('tests/tools/report --qr'))[0], 2, 'no text');
}

# --- What the kernel really prints is understood.

SKIP: {
    skip 'there is no image', 9 if !-f "$build/ntpmu.bin";
    delete $ENV{QEMU};
    symlink abs_path("$build/ntpmu.bin"), "$dir/ntpmu.bin" or die;
    my $groups = 'profile_picture*,tp_cost*,pmu_pmi*,hal_pmc_sets.cost,etw_rate.cost';
    my ($status, $text) = run_it("PMU=zen3 SMP=2 TESTS='$groups' tests/tools/run");
    is($status, 0, 'a run on zen3');
    my ($page, $data) = report('that run');
    my $log = $data->{logs}[0];
    my $m = $log->{measured};
    my %cost = map { $_->{name} => 1 } @{ $m->{cost} };
    is_deeply([grep { !$cost{$_} } 'a set of 6 counters read', 'a hook nobody wants',
               'a context switch record',
               'a context switch record with 4 counters', 'reading 4 counters', 'one raw read',
               'a thread with 4 counters arrives, another leaves'], [], 'its costs are found');
    ok(@{ $m->{skid} } && @{ $m->{samples} } == 1, 'skid and samples');
    is(scalar @{ $m->{samples}[0]{bars} }, 3, 'three functions have samples');
    is("@{ $log->{kinds}[0] }{qw(vendor version counters events)}", 'amd 1 6 Zen 3', 'its PMU');
    my @mute = grep { !defined $data->{tests}{$_}{proves} } keys %{ $data->{tests} };
    is("@mute", '', 'what its tests prove');
}
done_testing;
