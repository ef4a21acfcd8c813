import type { Dirent } from 'node:fs'
import { opendir, readlink } from 'node:fs/promises'
import { z } from 'zod'
import { descriptionOf } from './description.ts'
import { openSearchPlace, type HeldFolder } from '../files/held-folder.ts'
import { judgedPath, pathSchema, realPathOf, shownName, shownPath } from '../files/paths.ts'
import { limitOutput } from '../output-limit.ts'
import { defineTool, type ToolContext, type ToolOutput } from '../tool.ts'
import { answerProblems, ToolProblem } from '../tool-problem.ts'

const maxEntries = 10_000

const schema = z.object({
  path: pathSchema.optional().describe('The folder to list; default: the working folder.'),
})

export const lsTool = defineTool({
  name: 'ls',
  description: descriptionOf('ls'),
  schema,
  readOnly: true,
  replay: 'safe',
  access: ({ path = '.' }, place) => [{ type: 'read', path: realPathOf(path, place) }],
  run: (_, context, judged) => answerProblems(() => list(judgedPath(judged, 'read'), context)),
})

async function list(path: string, context: ToolContext): Promise<ToolOutput> {
  await using place = await openSearchPlace(path, context)
  if (place.type === 'file')
    throw new ToolProblem(`${shownPath(path, context)} is a file. Use read to see what is in it.`)
  const entries: Dirent[] = []
  let hasMore = false
  for await (const entry of await opendir(place.folder.entry('.'))) {
    context.signal.throwIfAborted()
    hasMore = entries.length === maxEntries
    if (hasMore) break
    entries.push(entry)
  }
  entries.sort((left, right) => (left.name < right.name ? -1 : 1))
  const lines: string[] = []
  for (const entry of entries) lines.push(await describeEntry(entry, place.folder))
  if (entries.length === 0) lines.push(`${shownPath(path, context)} is an empty folder.`)
  if (hasMore) lines.push(`[There are more than ${maxEntries} entries. Use find with a pattern.]`)
  return { content: await limitOutput(lines.join('\n'), context) }
}

async function describeEntry(entry: Dirent, folder: HeldFolder): Promise<string> {
  const name = shownName(entry.name)
  if (entry.isDirectory()) return `${name}/`
  if (entry.isSymbolicLink()) return `${name} -> ${shownName(await targetOf(entry, folder))}`
  return entry.isFile() ? name : `${name} (not a regular file)`
}

async function targetOf(entry: Dirent, folder: HeldFolder): Promise<string> {
  try {
    return await readlink(folder.entry(entry.name))
  } catch {
    // It was removed after it was listed.
    return '?'
  }
}
