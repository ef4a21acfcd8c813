/** A recording without what belongs to its machine, or to the program that wrote it. */

const keptCharacters = 400
const keptItems = 6

/** The prompts and tools of a program are its own: long texts and long lists of them are cut. What our scripts said is short. */
export function shortened(text: string, path: string): string {
  if (!/\.jsonl?$/.test(path)) return text
  if (path.endsWith('.json')) return `${JSON.stringify(cut(JSON.parse(text)), null, 1)}\n`
  return text
    .split('\n')
    .map((line) => (line === '' ? line : JSON.stringify(cut(JSON.parse(line)))))
    .join('\n')
}

function cut(value: unknown, name = ''): unknown {
  if (typeof value === 'string') return cutText(value)
  if (Array.isArray(value)) {
    const isOfProgram = /tool|skill|agent|system|name|line|digest/i.test(name) && !/call|toolUse/i.test(name)
    return (isOfProgram ? value.slice(0, keptItems) : value).map((item: unknown) => cut(item, name))
  }
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, cut(member, key)]))
}

function cutText(text: string): string {
  const isImage = text.startsWith('iVBORw0KGgo') || text.startsWith('data:image/')
  const inner = isImage ? undefined : jsonOf(text)
  if (inner !== undefined) return JSON.stringify(cut(inner))
  if (isImage || text.length <= keptCharacters) return text
  return `${text.slice(0, keptCharacters)} (shortened)`
}

/** Some programs keep JSON in strings. */
function jsonOf(text: string): unknown {
  if (!/^[{[]/.test(text)) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** With the same home and project for every machine. */
export function withoutPaths(
  text: string,
  { home, project, folder, installed }: Record<'home' | 'project' | 'folder' | 'installed', string>,
): string {
  return [
    [home, '/home/user'],
    [project, '/home/user/project'],
    [folder, '/home/user'],
    [installed, '/home/user/program'],
  ]
    .flatMap(([from = '', to = '']) => [
      [from, to],
      [from.replaceAll('/', '-'), to.replaceAll('/', '-')],
      [from.slice(1).replaceAll('/', '-'), to.slice(1).replaceAll('/', '-')],
      [from.slice(1), to.slice(1)],
    ])
    .reduce((result, [from = '', to = '']) => result.replaceAll(from, to), text)
    .replaceAll(/Linux \d+\.[\w.-]+/g, 'Linux 6.12.0')
}
