import TurndownService from 'turndown'

/** A page as Markdown: its text, headings, lists, tables, code and links, without decoration and controls. */
export function htmlMarkdown(html: string, url: string): string {
  const service = new TurndownService({
    headingStyle: 'atx',
    codeBlockStyle: 'fenced',
    bulletListMarker: '-',
    emDelimiter: '*',
    hr: '---',
  })
  service.remove([...noise])
  service.addRule('title', { filter: 'title', replacement: (title) => `Title: ${oneLine(title)}\n\n` })
  service.addRule('link', {
    filter: 'a',
    replacement: (content, node) => {
      const target = absolute(node.getAttribute('href'), url)
      return target === undefined || content.trim() === '' ? content : `[${oneLine(content)}](${target})`
    },
  })
  service.addRule('image', {
    filter: 'img',
    replacement: (_, node) => {
      const alternative = oneLine(node.getAttribute('alt') ?? '')
      const source = absolute(node.getAttribute('src'), url)
      return source === undefined ? alternative : `![${alternative}](${source})`
    },
  })
  service.addRule('code', {
    filter: 'pre',
    replacement: (_, node) => {
      const code = (node.textContent ?? '').replace(/\n$/, '')
      const fence = code.includes('```') ? '~~~~' : '```'
      return `\n\n${fence}\n${code}\n${fence}\n\n`
    },
  })
  addTables(service)
  // Last, because the newest rule takes precedence.
  service.addRule('hidden', { filter: isHidden, replacement: () => '' })
  return service
    .turndown(html)
    .replaceAll(/\n{3,}/g, '\n\n')
    .trim()
}

const noise = [
  'script',
  'style',
  'noscript',
  'template',
  'iframe',
  'object',
  'embed',
  'canvas',
  'nav',
  'footer',
  'button',
  'select',
  'input',
  'textarea',
  'dialog',
  'link',
  'meta',
] as const

type Element = Parameters<TurndownService.ReplacementFunction>[1]

function isHidden(node: Element): boolean {
  if (node.nodeName === 'svg' || node.nodeName === 'SVG') return true
  return (
    node.hasAttribute('hidden') ||
    node.getAttribute('aria-hidden') === 'true' ||
    /(?:display:none|visibility:hidden)/i.test((node.getAttribute('style') ?? '').replaceAll(/\s/g, ''))
  )
}

/** Undefined for links that do not leave the page: anchors, scripts, inline images. */
function absolute(reference: string | null, url: string): string | undefined {
  if (reference === null || reference.startsWith('#')) return undefined
  const target = URL.parse(reference, url)
  return target && ['http:', 'https:', 'mailto:'].includes(target.protocol) ? target.href : undefined
}

function addTables(service: TurndownService): void {
  service.addRule('cell', {
    filter: ['th', 'td'],
    replacement: (content) => ` ${oneLine(content).replaceAll('|', String.raw`\|`)} |`,
  })
  service.addRule('row', {
    filter: 'tr',
    replacement: (content, node) => `|${content}\n${isFirstRow(node) ? `|${' --- |'.repeat(cellsOf(node))}\n` : ''}`,
  })
  service.addRule('rows', { filter: ['thead', 'tbody', 'tfoot'], replacement: (content) => content })
  service.addRule('table', { filter: 'table', replacement: (content) => `\n\n${content}\n\n` })
}

function isFirstRow(row: Element): boolean {
  const group = row.parentNode
  if (row.previousElementSibling || !group) return false
  if (group.nodeName === 'TABLE') return true
  const before = (group as Element).previousElementSibling
  return !before || !['THEAD', 'TBODY', 'TFOOT'].includes(before.nodeName)
}

function cellsOf(row: Element): number {
  return [...row.childNodes].filter(({ nodeName }) => nodeName === 'TH' || nodeName === 'TD').length
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim()
}
