import { expect, test } from 'vitest'
import { markdownHtml } from './markdown-html.ts'

test('common Markdown becomes HTML', () => {
  const markdown = [
    '# Title',
    'Some **bold**, *soft* and `a < b` words',
    'in two lines, [a link](https://example.com/?a=1&b=2).',
    '',
    '- one',
    '  - inner',
    '2. two',
    '> quoted',
    '| a | b |',
    '|---|---|',
    '| 1 | 2 |',
    '---',
    '```ts',
    'const a = "**"',
    '```',
  ].join('\n')
  expect(markdownHtml(markdown)).toBe(
    '<h3>Title</h3><p>Some <strong>bold</strong>, <em>soft</em> and <code>a &lt; b</code> words<br>' +
      'in two lines, <a href="https://example.com/?a=1&amp;b=2" rel="noopener noreferrer nofollow">a link</a>.</p>' +
      '<ul><li class="dot in0">one<li class="dot in1">inner<li class="number in0" value="2">two</ul><blockquote>quoted</blockquote>' +
      '<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table><hr>' +
      '<pre><code>const a = &quot;**&quot;</code></pre>',
  )
})

test('foreign markup, script addresses and images are never emitted', () => {
  const hostile = [
    '<img src=x onerror=alert(1)>',
    '[x](javascript:alert(1)) [y](data:text/html,x) [z](https://a.example/"onmouseover="alert(1))',
    '![pixel](https://example.com/pixel.png)',
    '`<b>` **<i>** # <u>',
    '```"><script>',
    '</code></pre><script>alert(1)</script>',
  ].join('\n')
  const tags = markdownHtml(hostile).match(/<[^>]*>/g) ?? []
  expect(new Set(tags.filter((tag) => !/^<\/?(?:p|br|code|pre|strong|em)>$/.test(tag)))).toEqual(
    new Set(['<a href="https://example.com/pixel.png" rel="noopener noreferrer nofollow">', '</a>']),
  )
})

test('a hostile text takes no longer than an ordinary one', () => {
  const begin = performance.now()
  for (const piece of ['[', '`', '**', '*a', '> ', '```\n', '- ', '| |\n']) markdownHtml(piece.repeat(50_000))
  expect(performance.now() - begin).toBeLessThan(10_000)
})
