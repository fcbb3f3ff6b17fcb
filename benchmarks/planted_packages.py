"""The packages to plant regressions in, and expressions that use them and always have the same value."""

# ruff: noqa: E501

from __future__ import annotations

from attrs import frozen


@frozen
class Package:
    """A project on the index, its import package, the other projects it needs, and the expressions to evaluate."""

    project: str
    module: str
    setup: str
    expressions: tuple[str, ...]
    needs: tuple[str, ...] = ()


PACKAGES = (
    Package(
        "toolz",
        "toolz",
        "import toolz",
        (
            "list(toolz.partition_all(2, range(7)))",
            "list(toolz.sliding_window(3, range(6)))",
            "toolz.groupby(len, ['a', 'bb', 'cc', 'ddd'])",
            "toolz.merge_with(sum, {1: 2, 3: 4}, {1: 5})",
            "list(toolz.interleave([[1, 2, 3], [4, 5], [6]]))",
            "toolz.update_in({'a': {'b': 1}}, ['a', 'b'], lambda x: x + 1)",
            "toolz.reduceby(lambda x: x % 2, lambda a, b: a + b, range(9), 0)",
            "list(toolz.join(len, ['a', 'bb'], len, ['x', 'yy', 'zz']))",
            "toolz.curry(lambda a, b, c: a - b * c)(1)(2, 3)",
            "toolz.topk(2, [4, 9, 1, 7])",
            "list(toolz.unique([1, 2, 1, 3, 2], key=lambda x: x % 3))",
            "list(toolz.merge_sorted([1, 4, 7], [2, 3, 9]))",
            "toolz.get_in(['a', 1], {'a': [3, 4]}), toolz.pluck(1, [[1, 2], [3, 4]]).__next__()",
        ),
    ),
    Package(
        "more-itertools",
        "more_itertools",
        "import more_itertools as m",
        (
            "list(m.chunked(range(7), 3)), list(m.divide(3, range(8))[0])",
            "list(m.windowed(range(5), 3, step=2))",
            "list(m.split_at('abcdcba', lambda x: x == 'b'))",
            "list(m.distinct_permutations([1, 0, 1]))",
            "list(m.set_partitions('abc', 2))",
            "m.bucket(['a1', 'b1', 'a2'], key=lambda x: x[0])['a'].__next__()",
            "list(m.numeric_range(1.0, 3.5, 0.5))",
            "list(m.collapse([1, [2, [3, 'ab']]])), list(m.interleave_longest([1, 2], [3]))",
            "m.peekable([1, 2, 3]).peek(), list(m.stagger(range(4)))",
            "list(m.consecutive_groups([1, 2, 5, 6, 7, 9]).__next__())",
            "m.minmax([3, 1, 2]), m.nth_permutation('abcd', 2, 7), m.all_unique([1, 2])",
            "list(m.sort_together([(4, 3, 1), 'abc']))",
            "m.SequenceView([1, 2, 3])[-1], list(m.seekable(iter('abc')))",
        ),
    ),
    Package(
        "packaging",
        "packaging",
        "from packaging import version, specifiers, requirements, markers, utils, tags",
        (
            "sorted(['1.0', '1.0rc1', '1.0.dev1', '1.0.post2', '0.9'], key=version.Version)",
            "str(version.Version('1!2.3a4.post5.dev6+local.7'))",
            "list(specifiers.SpecifierSet('>=1.0,!=1.2,<2').filter(['0.9', '1.0', '1.2', '1.5', '2.0']))",
            "specifiers.SpecifierSet('~=1.4.2').contains('1.4.9'), specifiers.SpecifierSet('==1.*').contains('1.9')",
            'str(requirements.Requirement(\'a[b,c]>=1.0; python_version < "3" and extra == "x"\'))',
            'markers.Marker(\'python_version >= "3" or os_name == "nt"\').evaluate()',
            "list(map(str, utils.parse_wheel_filename('foo_bar-1.0-2-py3-none-any.whl')[:3])), "
            "utils.canonicalize_name('A_b.C')",
            "sorted(str(t) for t in tags.parse_tag('py2.py3-none-any')), utils.canonicalize_version('1.4.0.0')",
        ),
    ),
    Package(
        "idna",
        "idna",
        "import idna",
        (
            "idna.encode('b\\u00fccher.example'), idna.decode('xn--bcher-kva.example')",
            "idna.alabel('\\u00fcber'), idna.ulabel('xn--ber-goa')",
            "idna.encode('F\\u00c4\\u00df.de', uts46=True)",
            "idna.check_bidi('\\u05d0\\u05d1'), idna.valid_contexto('\\u30fb\\u30a2', 0)",
        ),
    ),
    Package(
        "jinja2",
        "jinja2",
        "import jinja2",
        (
            "jinja2.Template('{% for x in y %}{{ loop.index }}:{{ x|upper }} {% endfor %}').render(y='abc')",
            "jinja2.Template('{% macro f(a, b=2) %}{{ a + b }}{% endmacro %}{{ f(1) }}{{ f(1, 5) }}').render()",
            'jinja2.Template(\'{{ [3, 1, 2]|sort|join("-") }}{{ "%s"|format(1) }}\').render()',
            "jinja2.Template('{% set x = 1 %}{% if x is odd %}odd{% else %}even{% endif %}  {{- x }}').render()",
            "jinja2.Environment(trim_blocks=True).from_string('{% if 1 %}\\na{% endif %}\\nb').render()",
            'jinja2.Template(\'{{ "a b c d"|wordcount }} {{ "hello world"|truncate(8) }}\').render()',
        ),
        ("markupsafe",),
    ),
    Package(
        "click",
        "click",
        "import click\nfrom click.testing import CliRunner\n"
        "@click.command()\n@click.option('--n', type=int, default=2, help='How many.')\n@click.argument('x', nargs=-1)\n"
        "def tool(n, x):\n    click.echo(f'{n} {x}')\n",
        (
            "CliRunner().invoke(tool, ['--n', '3', 'a', 'b']).output",
            "CliRunner().invoke(tool, ['--help']).output",
            "CliRunner().invoke(tool, ['--n', 'x']).output, CliRunner().invoke(tool, ['--m']).exit_code",
            "click.style('a', fg='red', bold=True), click.unstyle(click.style('a', fg='red'))",
            "click.formatting.wrap_text('one two three four five', width=11)",
        ),
    ),
    Package(
        "sortedcontainers",
        "sortedcontainers",
        "import sortedcontainers as s",
        (
            "s.SortedList([3, 1, 2] * 3), s.SortedList(range(50))[10:15], s.SortedList('hello').count('l')",
            "s.SortedDict(b=1, a=2).items(), s.SortedDict({1: 2, 3: 4}).peekitem(0)",
            "s.SortedSet([1, 5, 2]) | {9}, s.SortedSet('abc').bisect('b'), s.SortedSet([3, 1])[0]",
            "s.SortedKeyList([3, -4, 1], key=abs), list(s.SortedList([1, 2, 3, 4]).irange(2, 3))",
        ),
    ),
    Package(
        "humanize",
        "humanize",
        "import humanize, datetime",
        (
            "humanize.naturalsize(3_000_000), humanize.naturalsize(3_000_000, binary=True), humanize.naturalsize(300)",
            "humanize.precisedelta(datetime.timedelta(days=3, seconds=4000)), humanize.intcomma(1234567.891, 2)",
            "humanize.intword(12_400_000), humanize.ordinal(103), humanize.apnumber(7), humanize.fractional(0.3)",
            "humanize.naturaldelta(datetime.timedelta(days=400)), humanize.scientific(1234.5), humanize.metric(0.012, 'V')",
        ),
    ),
    Package(
        "markdown",
        "markdown",
        "import markdown",
        (
            "markdown.markdown('# A\\n\\n* one\\n* two\\n\\n1. x\\n2. y')",
            "markdown.markdown('a *b* **c** `d` [e](http://f \"g\") ![h](i)')",
            "markdown.markdown('> quote\\n\\n    code\\n\\n---\\n\\n<div>raw</div>')",
            "markdown.markdown('a | b\\n--|--\\n1 | 2', extensions=['tables', 'fenced_code', 'toc'])",
        ),
    ),
    Package(
        "pyparsing",
        "pyparsing",
        "import pyparsing as p",
        (
            "p.OneOrMore(p.Word(p.alphas)).parse_string('ab cd').as_list()",
            "p.infix_notation(p.Word(p.nums), [('*', 2, p.OpAssoc.LEFT), ('+', 2, p.OpAssoc.LEFT)]).parse_string('1+2*3').as_list()",
            "p.DelimitedList(p.Word(p.nums)('n')).parse_string('1, 2, 3').as_list(), p.nested_expr().parse_string('(a (b))').as_list()",
            "list(p.Word(p.nums).scan_string('a1 b22')), p.Regex('[a-z]+').transform_string('ab')",
        ),
    ),
    Package(
        "tabulate",
        "tabulate",
        "import tabulate",
        (
            "tabulate.tabulate([[1, 2.5], ['a', None]], headers=['x', 'y'], tablefmt='grid')",
            "tabulate.tabulate([{'a': 1, 'b': 22.25}, {'a': 10, 'b': 3}], headers='keys', tablefmt='github', floatfmt='.1f')",
            "tabulate.tabulate([[1, 'x'], [22, 'yy']], tablefmt='html'), tabulate.simple_separated_format(', ')",
        ),
    ),
    Package(
        "boltons",
        "boltons",
        "from boltons import iterutils, strutils, dictutils, mathutils, statsutils, timeutils, listutils, setutils, formatutils",
        (
            "iterutils.chunked(range(7), 3), iterutils.windowed(range(5), 2), iterutils.remap({'a': [1, {'b': 2}]})",
            "strutils.slugify('Hello, W\\u00f6rld'), strutils.camel2under('BasicParseTest'), strutils.pluralize('fox'), strutils.bytes2human(128991)",
            "dictutils.OMD([(1, 2), (1, 3), (2, 4)]).todict(multi=True), dictutils.subdict({'a': 1, 'b': 2}, ['a'])",
            "mathutils.clamp(9, 1, 5), mathutils.ceil(3.2, [1, 4, 9]), statsutils.Stats([1, 2, 3, 9]).describe()['mean']",
            "listutils.BarrelList(range(30)).pop(4), list(setutils.IndexedSet([3, 1, 3, 2]))[1:], strutils.multi_replace('abc', {'a': 'x'})",
        ),
    ),
    Package(
        "mistune",
        "mistune",
        "import mistune",
        (
            "mistune.html('# A\\n\\n* one\\n* two *b*\\n\\n1. x')",
            "mistune.html('a **c** `d` [e](http://f \"g\")\\n\\n> q\\n\\n```py\\nx\\n```')",
            "mistune.create_markdown(plugins=['table', 'strikethrough'])('a | b\\n--|--\\n1 | ~~2~~')",
        ),
    ),
    Package(
        "inflection",
        "inflection",
        "import inflection as i",
        (
            "i.pluralize('octopus'), i.singularize('mice'), i.camelize('a_b_c'), i.underscore('HTMLParser'), i.ordinalize(11), i.titleize('x-men'), i.parameterize('Hello Snapshot!')",
        ),
    ),
    Package(
        "textdistance",
        "textdistance",
        "import textdistance as t",
        (
            "t.levenshtein('kitten', 'sitting'), t.hamming('ab', 'ac'), t.damerau_levenshtein('ab', 'ba')",
            "round(t.jaro_winkler('martha', 'marhta'), 4), round(t.cosine('night', 'nacht'), 4), t.lcsseq('abcd', 'acbd')",
            "round(t.jaccard('test', 'text'), 4), t.needleman_wunsch('GATT', 'GCAT'), t.smith_waterman('GATT', 'GCAT'), t.mra('Byrne', 'Boern')",
        ),
    ),
)
