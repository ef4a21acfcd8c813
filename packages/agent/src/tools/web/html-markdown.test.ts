import { describe, expect, test } from 'vitest'
import { htmlMarkdown } from './html-markdown.ts'
import { htmlToMarkdown } from './fetch-page.ts'

const url = 'https://example.com/docs/page.html'
const markdown = (html: string) => htmlMarkdown(html, url)

test('a page becomes its title and text, without its surroundings', () => {
  const html = `<!doctype html><html><head><title>The
    Page</title><style>p { color: red }</style><script>alert(1)</script><meta name="x"></head>
    <body><nav><a href="/">Home</a></nav><header><h1>Heading</h1></header>
    <main><p>Some <b>bold</b> and <em>soft</em> text.</p><ul><li>one</li><li>two</li></ul></main>
    <form><input value="x"><button>Send</button></form><iframe src="x"></iframe><noscript>no</noscript>
    <svg><text>picture</text></svg><footer>imprint</footer></body></html>`
  expect(markdown(html)).toBe('Title: The Page\n\n# Heading\n\nSome **bold** and *soft* text.\n\n-   one\n-   two')
})

test('links and images are absolute, and those without a target are only their text', () => {
  expect(markdown('<a href="../x?a=1">up</a>')).toBe('[up](https://example.com/x?a=1)')
  expect(markdown('<a href="#part">here</a> <a href="javascript:alert(1)">run</a> <a>bare</a>')).toBe('here run bare')
  expect(markdown('<img src="/a.png" alt="A"> <img src="data:image/png;base64,AAAA" alt="inline">')).toBe(
    '![A](https://example.com/a.png) inline',
  )
})

test('code keeps its lines and is not escaped', () => {
  expect(markdown('<pre><span>a *b*</span>\n  c_d</pre>')).toBe('```\na *b*\n  c_d\n```')
  expect(markdown('<pre><code>```\nx</code></pre>')).toBe('~~~~\n```\nx\n~~~~')
})

test('a table stays a table', () => {
  const html = `<table><thead><tr><th>Name</th><th>Size</th></tr></thead>
    <tbody><tr><td>a|b</td><td>1 <br> 2</td></tr><tr><td>c</td><td></td></tr></tbody></table>`
  expect(markdown(html)).toBe(String.raw`| Name | Size |
| --- | --- |
| a\|b | 1 2 |
| c |  |`)
})

test('invisible content is left out', () => {
  expect(
    markdown(
      '<p>seen</p><p hidden>one</p><p style="display: none">two</p><a aria-hidden="true" href="/x">three</a>' +
        '<div style="VISIBILITY:hidden">four</div>',
    ),
  ).toBe('seen')
})

describe('on its own thread', () => {
  test('the result is the same', async () => {
    const html = '<h1>A</h1><p>b</p>'
    expect(await htmlToMarkdown({ html, url }, new AbortController().signal)).toBe(markdown(html))
  })

  test('a page that would take forever ends with the signal', async () => {
    const html = '<div>'.repeat(200_000)
    const stopping = htmlToMarkdown({ html, url }, AbortSignal.timeout(500))
    await expect(stopping).rejects.toMatchObject({ name: 'TimeoutError' })
  })

  test('a page that breaks the converter is a problem, not a crash', async () => {
    await expect(htmlToMarkdown({ html: '<b>'.repeat(100_000), url }, AbortSignal.timeout(25_000))).rejects.toThrow(
      'cannot be converted to Markdown',
    )
  })
})
