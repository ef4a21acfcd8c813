import fc from 'fast-check'
import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test } from 'vitest'
import { parseBlocks, type Blocks } from './blocks.ts'
import { Markdown } from './markdown.tsx'
import { decodeReferences, safeUrl } from './safe-url.ts'

function drawn(text: string): string {
  return renderToStaticMarkup(createElement(Markdown, { text }))
}

test('Markdown becomes elements', () => {
  expect(drawn('# Title\n\nsome **bold** *text* and `code`\n\n- one\n- two')).toBe(
    '<div class="markdown"><h3>Title</h3><p>some <strong>bold</strong> <em>text</em> and <code>code</code></p>' +
      '<ul><li><div class="inner">one</div></li><li><div class="inner">two</div></li></ul></div>',
  )
  expect(drawn('| a | b |\n|--:|---|\n| 1 | 2 |')).toContain('<td class="align-right">1</td><td>2</td>')
  expect(drawn('- [x] done')).toContain('<input type="checkbox" disabled="" aria-label="done" checked=""/>')
  expect(drawn('a &amp; b &lt;c&gt; &#33;')).toContain('a &amp; b &lt;c&gt; !')
})

test('HTML is shown as it was written', () => {
  expect(drawn('<img src=x onerror=alert(1)>')).toBe(
    '<div class="markdown"><p class="source">&lt;img src=x onerror=alert(1)&gt;</p></div>',
  )
  expect(drawn('a <b onclick="x()">b</b>')).toContain('&lt;b onclick=&quot;x()&quot;&gt;')
})

test('links lead only to pages and mail, and images are links', () => {
  for (const href of hostileUrls) {
    expect(safeUrl(href), href).toBeUndefined()
    expect(drawn(`[text](<${href}>)`)).not.toContain('<a ')
  }
  const attributes = 'target="_blank" rel="noopener noreferrer nofollow"'
  expect(drawn('[text](https://example.com/a?b=1&c=2)')).toContain(
    `<a href="https://example.com/a?b=1&amp;c=2" title="https://example.com/a?b=1&amp;c=2" ${attributes}>text</a>`,
  )
  expect(drawn('<me@example.com>')).toContain('href="mailto:me@example.com"')
  const picture = drawn('![a cat](https://example.com/cat.png)')
  expect(picture).toContain('>Image: a cat</a>')
  expect(picture).not.toContain('<img')
})

test('no text makes an element or attribute that can run code or load something', () => {
  const seeds = fc.constantFrom(...hostilePieces)
  fc.assert(
    fc.property(fc.array(seeds, { minLength: 1, maxLength: 8 }), (pieces) => {
      const html = drawn(pieces.join(''))
      expect(
        html.match(
          /<(?!\/?(?:div|p|h[3-6]|ul|ol|li|blockquote|pre|code|span|strong|em|del|a|br|hr|table|thead|tbody|tr|th|td|input|button)[ />])/g,
        ),
      ).toBeNull()
      for (const [, href] of html.matchAll(/<[^>]* href="([^"]*)"/g)) expect(href).toMatch(/^(?:https?:|mailto:)/)
      expect(html.match(/<[^>"]*(?:"[^"]*"[^>"]*)*\s(?:on\w+|src|style|srcdoc|formaction)=/g)).toBeNull()
    }),
    { numRuns: 1000 },
  )
})

test('text that grows gives the same blocks as the whole text, wherever it is cut', () => {
  const piece = fc.constantFrom(
    '# T\n',
    'word ',
    '\n',
    '\n\n',
    '- item\n',
    '  - inner\n',
    '1. one\n',
    '```ts\n',
    'code\n',
    '```\n',
    '> quote\n',
    '| a | b |\n',
    '|---|---|\n',
    '**',
    '`',
    '---\n',
    '===\n',
    '<div>\n',
    '    four\n',
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 25 }), fc.array(fc.nat(60), { maxLength: 10 }), (pieces, steps) => {
      const text = pieces.join('')
      let blocks: Blocks | undefined
      let end = 0
      for (const step of [...steps, text.length]) {
        end = Math.min(text.length, end + step)
        blocks = parseBlocks(text.slice(0, end), blocks)
      }
      expect(blocks?.tokens).toEqual(parseBlocks(text).tokens)
    }),
    { numRuns: 1000 },
  )
})

test('finished blocks keep their identity while text grows, and other text starts over', () => {
  const before = parseBlocks('one\n\ntwo\n\nthr')
  const after = parseBlocks('one\n\ntwo\n\nthree', before)
  expect(after.tokens[0]).toBe(before.tokens[0])
  expect(parseBlocks('one\n\ntwo\n\nthree', after)).toBe(after)
  expect(parseBlocks('other', after).tokens).toHaveLength(1)
})

test('a long text keeps its formatting, whether it grew or came at once', () => {
  const text = 'A *word* in a paragraph.\n\n```ts\nconst a = 1\n```\n\n'.repeat(10_000)
  let blocks: Blocks | undefined
  for (let end = 0; end <= text.length; end += 7001) blocks = parseBlocks(text.slice(0, end), blocks)
  blocks = parseBlocks(text, blocks)
  expect(blocks.tokens.filter(({ type }) => type === 'code')).toHaveLength(10_000)
  expect(parseBlocks(text).tokens).toEqual(blocks.tokens)
  expect(drawn(text).match(/<em>/g)).toHaveLength(10_000)
})

test('very long or very deep text is shown without formatting', () => {
  expect(parseBlocks('a\n\n'.repeat(700_000)).tokens).toHaveLength(1)
  expect(parseBlocks('*a*'.repeat(100_000)).tokens).toHaveLength(1)
  for (const text of ['>'.repeat(50_000), '- '.repeat(3000), '* '.repeat(100), '['.repeat(20_000)])
    expect(drawn(text)).toContain('markdown')
})

test('no repeated piece of text takes long to parse', () => {
  const slow: string[] = []
  for (const piece of repeated) {
    for (const start of ['', 'a', '- ', '> ']) {
      const before = process.cpuUsage()
      parseBlocks(start + piece.repeat(Math.ceil(10_000 / piece.length)))
      const { user, system } = process.cpuUsage(before)
      if (user + system > 1_000_000) slow.push(JSON.stringify(start + piece))
    }
  }
  expect(slow).toEqual([])
})

test('character references become characters, and invalid ones a replacement', () => {
  expect(decodeReferences('&lt;&#x41;&#0;&#xd800;&#x110000;&bogus;&constructor;')).toBe(
    '<A\ufffd\ufffd\ufffd&bogus;&constructor;',
  )
})

const hostileUrls = [
  'javascript:alert(1)',
  'JaVaScRiPt:alert(1)',
  ' javascript:alert(1)',
  'java\tscript:alert(1)',
  '&#106;avascript:alert(1)',
  'javascript&colon;alert(1)',
  'data:text/html,<script>alert(1)</script>',
  'vbscript:msgbox(1)',
  'file:///etc/passwd',
  'blob:https://example.com/1',
  '//example.com/x',
  '/api/sign-out',
  '#/sessions/x',
  '\u0001javascript:alert(1)',
]

const hostilePieces = [
  ...hostileUrls,
  '<script>alert(1)</script>',
  '<img src=x onerror=alert(1)>',
  '<svg/onload=alert(1)>',
  '<iframe srcdoc="<script>alert(1)</script>">',
  '<style>@import "https://example.com"</style>',
  '<a href="javascript:alert(1)">',
  '"><img src=x onerror=alert(1)>',
  '[x](javascript:alert(1))',
  '[x](<javascript:alert(1)>)',
  '![x](https://example.com/x.png "t")',
  '![x](javascript:alert(1))',
  '[x][r]\n\n[r]: javascript:alert(1)\n',
  '<javascript:alert(1)>',
  '```html" onclick="alert(1)\n',
  '```\n',
  '`',
  '**',
  '\n\n',
  '> ',
  '- ',
  '|a|b|\n|-|-|\n|',
  '&lt;script&gt;',
  '\\<',
  '&#60;script&#62;',
]

const repeated = [
  ...['>', '> ', '[', '- ', '*a ', '`', '[a](', '<a ', '_a', '**', '~~a', '![', '](', '<', '<!--', '&', '\\', 'www.'],
  ...['http://a', 'a@a.', 'a@', '|', '|a|\n|-|\n', '# ', '\n> ', '\n- ', '\n  - ', '1. ', '\t', '    a\n', '    '],
  ...['\n\n', '***', '---\n', 'a\n', '=', '<div>', '<a b="', '[a]: ', '[a]:\n', '```', 'a`', '(', '[[', '*a_', 'a**'],
  ...['**a*', 'a  \n', 'x', ' '],
]
