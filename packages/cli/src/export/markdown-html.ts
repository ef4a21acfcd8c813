/**
 * Common Markdown as HTML. Escapes all text first, so that only this module creates markup. Images become links: the page makes no
 * requests.
 */
export function markdownHtml(markdown: string): string {
  const lines = markdown.replaceAll('\r\n', '\n').split('\n')
  let html = ''
  for (let index = 0; index < lines.length;) {
    const block = blockAt(lines, index)
    html += block.html
    index += block.lines
  }
  return html
}

interface Block {
  html: string
  /** The number of lines it takes. */
  lines: number
}

const fence = /^ {0,3}(`{3,}|~{3,})/
const heading = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/
const rule = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/
const listItem = /^(\s*)(?:[-*+]|(\d{1,9})[.)])\s+(.*)$/
const quote = /^ {0,3}>\s?/
const tableRow = /^\s*\|.*\|\s*$/
const tableLine = /^[\s|:-]+$/

function blockAt(lines: readonly string[], index: number): Block {
  const line = lines[index] ?? ''
  if (line.trim() === '') return { html: '', lines: 1 }
  if (fence.test(line)) return codeAt(lines, index)
  const [, marks, title = ''] = heading.exec(line) ?? []
  if (marks !== undefined) {
    const level = Math.min(6, marks.length + 2) // the page uses the first two heading levels itself
    return { html: `<h${level}>${inline(title)}</h${level}>`, lines: 1 }
  }
  if (rule.test(line)) return { html: '<hr>', lines: 1 }
  if (quote.test(line)) return quoteAt(lines, index)
  if (tableRow.test(line) && tableLine.test(lines[index + 1] ?? 'x')) return tableAt(lines, index)
  return listItem.test(line) ? listAt(lines, index) : paragraphAt(lines, index)
}

function codeAt(lines: readonly string[], index: number): Block {
  const [, open = '```'] = fence.exec(lines[index] ?? '') ?? []
  const isEnd = (line: string): boolean =>
    line.trim().startsWith(open) && line.trim().replaceAll(open.charAt(0), '') === ''
  const body = takeWhile(lines, index + 1, (line) => !isEnd(line))
  // Skips both fences; a missing last one is past the end.
  return { html: `<pre><code>${escapeHtml(body.join('\n'))}</code></pre>`, lines: body.length + 2 }
}

function quoteAt(lines: readonly string[], index: number): Block {
  const body = takeWhile(lines, index, (line) => quote.test(line))
  // One level only: a nested quote keeps its mark.
  const text = body.map((line) => inline(line.replace(quote, ''))).join('<br>')
  return { html: `<blockquote>${text}</blockquote>`, lines: body.length }
}

function tableAt(lines: readonly string[], index: number): Block {
  const body = takeWhile(lines, index, (line) => tableRow.test(line))
  const row = (line: string, tag: 'td' | 'th'): string => {
    const cells = line.trim().slice(1, -1).split('|')
    return `<tr>${cells.map((cell) => `<${tag}>${inline(cell.trim())}</${tag}>`).join('')}</tr>`
  }
  const [head = '', , ...rows] = body
  const made = row(head, 'th') + rows.map((line) => row(line, 'td')).join('')
  return { html: `<table>${made}</table>`, lines: body.length }
}

/** One list; the indentation of an item becomes its class. */
function listAt(lines: readonly string[], index: number): Block {
  const body = takeWhile(lines, index, (line) => listItem.test(line) || /^\s{2,}\S/.test(line))
  let items = ''
  for (const line of body) {
    const [, indent = '', number, text] = listItem.exec(line) ?? []
    if (text === undefined) items += ` ${inline(line.trim())}`
    else {
      const level = Math.min(4, Math.floor(indent.replaceAll('\t', '    ').length / 2))
      const kind = number === undefined ? 'dot' : 'number'
      items += `<li class="${kind} in${level}"${number === undefined ? '' : ` value="${number}"`}>${inline(text)}`
    }
  }
  return { html: `<ul>${items}</ul>`, lines: body.length }
}

function paragraphAt(lines: readonly string[], index: number): Block {
  const body = takeWhile(lines, index, (line, first) => first || (line.trim() !== '' && !beginsBlock(line)))
  return { html: `<p>${body.map(inline).join('<br>')}</p>`, lines: body.length }
}

function beginsBlock(line: string): boolean {
  return [fence, heading, rule, quote, listItem].some((start) => start.test(line))
}

function takeWhile(
  lines: readonly string[],
  from: number,
  fits: (line: string, isFirst: boolean) => boolean,
): readonly string[] {
  let to = from
  while (to < lines.length && fits(lines[to] ?? '', to === from)) to++
  return lines.slice(from, to)
}

/** Longer lines are not prose, and matching pairs in them is slow. */
const maxInline = 4000

function inline(text: string): string {
  if (text.length > maxInline) return escapeHtml(text)
  return text
    .split(/(`+[^`]+`+)/)
    .map((part, index) =>
      index % 2 === 1 ? `<code>${escapeHtml(part.replaceAll(/^`+|`+$/g, ''))}</code>` : dressed(part),
    )
    .join('')
}

function dressed(text: string): string {
  return escapeHtml(text)
    .replaceAll(/!?\[([^\]]{1,500})\]\(((?:https?:\/\/|mailto:)[^\s()<>*~]{1,2000})\)/g, link)
    .replaceAll(/\*\*([^*]{1,1000})\*\*/g, '<strong>$1</strong>')
    .replaceAll(/(^|[\s(])\*([^*\s][^*]{0,1000})\*(?=$|[\s).,;:!?])/g, '$1<em>$2</em>')
    .replaceAll(/~~([^~]{1,1000})~~/g, '<del>$1</del>')
}

/** Text and address are already escaped. */
function link(_: string, text: string, address: string): string {
  return `<a href="${address}" rel="noopener noreferrer nofollow">${text}</a>`
}

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

/** Escapes text and quoted attributes, whatever value the log has. Shows characters that HTML forbids or that reverse text as a box. */
export function escapeHtml(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  return text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? '').replaceAll(unwanted, '\ufffd')
}

// oxlint-disable-next-line no-control-regex
const unwanted = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g
