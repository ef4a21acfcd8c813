import { existsSync } from 'node:fs'
import { glob, readFile } from 'node:fs/promises'
import { dirname, join, posix } from 'node:path'

/** Links and pictures of a built site that lead to no file, or to no anchor of a page. Links to other hosts are not followed. */
export async function deadLinks(folder: string): Promise<string[]> {
  const pages = new Map<string, string>()
  for await (const file of glob('**/*.html', { cwd: folder })) {
    pages.set(file.replaceAll('\\', '/'), await readFile(join(folder, file), 'utf8'))
  }
  const anchors = new Map([...pages].map(([page, html]) => [page, idsOf(html)]))
  return [...pages].flatMap(([page, html]) =>
    targetsOf(html).flatMap((target) => {
      const problem = problemOf({ page, target, folder, anchors })
      return problem === undefined ? [] : [`${page}: ${target} ${problem}`]
    }),
  )
}

function problemOf(link: {
  page: string
  target: string
  folder: string
  anchors: ReadonlyMap<string, ReadonlySet<string>>
}): string | undefined {
  const { page, target, folder, anchors } = link
  if (/^(?:[a-z]+:|\/\/)/i.test(target)) return undefined
  const [path = '', fragment = ''] = decodeURI(target).split('#')
  const file = fileOf(page, path.replace(/\?.*$/, ''))
  if (!anchors.has(file)) return existsSync(join(folder, file)) ? undefined : 'leads to no file'
  return fragment === '' || anchors.get(file)?.has(fragment) ? undefined : 'leads to no anchor'
}

function fileOf(page: string, path: string): string {
  if (path === '') return page
  const absolute = path.startsWith('/') ? path.slice(1) : posix.join(dirname(page), path)
  return absolute === '' || absolute.endsWith('/') ? `${absolute}index.html` : absolute
}

function targetsOf(html: string): string[] {
  const targets = html.matchAll(/<(?:a|img|link|script)\b[^>]*?\s(?:href|src)="([^"]+)"/g)
  return [...new Set([...targets].map((match) => unescapeHtml(match[1] as string)))]
}

function idsOf(html: string): Set<string> {
  return new Set([...html.matchAll(/\sid="([^"]+)"/g)].map((match) => unescapeHtml(match[1] as string)))
}

function unescapeHtml(text: string): string {
  return text.replaceAll('&quot;', '"').replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')
}
