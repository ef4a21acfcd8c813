import type { ToolUse } from '@tapetree/session'
import type { Entry } from '@tapetree/session/format'

/** Paths that tool calls have read or changed, each once, the most recent last. */
export interface TouchedFiles {
  read: readonly string[]
  /** Whether or not they were also read. */
  changed: readonly string[]
}

export const noFiles: TouchedFiles = { read: [], changed: [] }

const maxListed = 200
/** The first item of a list that was truncated. */
const others = '(and others before these)'

/** The files of the successful calls, added to those from before. */
export function filesTouchedIn(entries: readonly Entry[], before: TouchedFiles = noFiles): TouchedFiles {
  const read = new Set(before.read)
  const changed = new Set(before.changed)
  for (const { name, input } of succeededCalls(entries)) {
    const path = pathOf(input)
    if (path === undefined) continue
    const touched = name === 'read' ? read : changed
    touched.delete(path)
    touched.add(path)
  }
  return {
    read: bounded([...read].filter((path) => !changed.has(path) || path === others)),
    changed: bounded([...changed]),
  }
}

/** The lists at the end of a summary; empty if no file was touched. */
export function filesText({ read, changed }: TouchedFiles): string {
  return [listText('files-read', read), listText('files-changed', changed)].filter((list) => list !== '').join('\n\n')
}

/** Separates a summary from the lists at its end. */
export function parseFiles(summary: string): { text: string; files: TouchedFiles } {
  const { text: withoutChanged, paths: changed } = parseList(summary, 'files-changed')
  const { text, paths: read } = parseList(withoutChanged, 'files-read')
  return { text, files: { read, changed } }
}

const fileTools = new Set(['read', 'write', 'edit'])

function succeededCalls(entries: readonly Entry[]): ToolUse[] {
  const open = new Map<string, ToolUse>()
  const succeeded: ToolUse[] = []
  for (const entry of entries) {
    if (entry.type !== 'message') continue
    for (const block of entry.message.content) {
      if (block.type === 'tool_use' && fileTools.has(block.toolUse.name)) open.set(block.toolUse.id, block.toolUse)
      if (block.type !== 'tool_result') continue
      const call = open.get(block.toolResult.toolUseId)
      open.delete(block.toolResult.toolUseId)
      if (call && !block.toolResult.isError) succeeded.push(call)
    }
  }
  return succeeded
}

function pathOf({ path }: Record<string, unknown>): string | undefined {
  if (typeof path !== 'string') return undefined
  const line = path.replace(/\s+/g, ' ').trim()
  return line === '' ? undefined : line
}

function bounded(paths: readonly string[]): string[] {
  const known = paths.filter((path) => path !== others)
  const isWhole = known.length === paths.length && known.length <= maxListed
  return isWhole ? known : [others, ...known.slice(-maxListed)]
}

function listText(tag: string, paths: readonly string[]): string {
  return paths.length === 0 ? '' : `<${tag}>\n${paths.join('\n')}\n</${tag}>`
}

function parseList(text: string, tag: string): { text: string; paths: string[] } {
  const start = text.lastIndexOf(`<${tag}>\n`)
  const end = `\n</${tag}>`
  if (start === -1 || !text.endsWith(end)) return { text, paths: [] }
  const paths = text.slice(start + tag.length + 3, -end.length).split('\n')
  return { text: text.slice(0, start).trimEnd(), paths }
}
