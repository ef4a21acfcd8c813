import { realpath, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { isInside } from '@tapetree/agent/util/is-inside'
import { sourceNames, type Found, type FoundSession, type SourceName, type UnusableFile } from './import-source.ts'
import { findAt, sources, type Machine } from './sources.ts'

export interface FindOptions {
  machine: Machine
  /** Only sessions of these programs. Default: all. */
  from?: readonly SourceName[]
  /** Only sessions of this folder and those in it. Absolute. */
  project?: string
  /** Files or folders to look in, instead of where the programs keep their sessions. Absolute. */
  paths?: readonly string[]
  signal?: AbortSignal
}

export interface FoundSessions {
  /** Parents come before the sessions that were made from them. */
  sessions: FoundSession[]
  unusable: UnusableFile[]
}

/** The sessions of other programs on this machine. Reads the beginning of each, and changes nothing. */
export async function findSessions({
  machine,
  from = sourceNames,
  project,
  paths,
  signal,
}: FindOptions): Promise<FoundSessions> {
  const result: FoundSessions = { sessions: [], unusable: [] }
  const known = new Map<string, number>()
  for await (const each of allFound({ machine, from, ...(paths && { paths }) })) {
    signal?.throwIfAborted()
    if (each.type === 'unusable') {
      result.unusable.push(each.file)
      continue
    }
    const { source, session, path } = each.found
    if (project !== undefined && (session.cwd === undefined || !isInside(session.cwd, project))) continue
    const name = `${source} ${session.id}`
    const place = known.get(name)
    const other = place === undefined ? undefined : result.sessions[place]
    if (place === undefined || !other) known.set(name, result.sessions.push(each.found) - 1)
    else if (source === 'gemini') result.sessions[place] = joined(other, each.found)
    else result.unusable.push({ source, path, reason: `${other.path} has the same session` })
  }
  const hasParent = ({ session }: FoundSession): number => (session.parentId === undefined ? 0 : 1)
  result.sessions.sort((left, right) => hasParent(left) - hasParent(right))
  return result
}

/** Gemini CLI begins another file when it resumes a session. */
function joined(first: FoundSession, second: FoundSession): FoundSession {
  return {
    ...first,
    bytes: first.bytes + second.bytes,
    modified: first.modified > second.modified ? first.modified : second.modified,
    lines: async function* read(signal) {
      let last = 0
      for await (const line of first.lines(signal)) yield { ...line, number: (last = line.number) }
      for await (const line of second.lines(signal)) yield { ...line, number: last + line.number }
    },
  }
}

async function* allFound({
  machine,
  from,
  paths,
}: {
  machine: Machine
  from: readonly SourceName[]
  paths?: readonly string[]
}): AsyncGenerator<Found> {
  if (paths) {
    const only = from.length === 1 ? from[0] : undefined
    for (const path of paths) yield* await findAt(resolve(path), only)
    return
  }
  for (const name of from) {
    const folders = await Promise.all(sources[name].folders(machine).map(realFolder))
    for (const folder of new Set(folders)) if (folder !== undefined) yield* sources[name].find(folder)
  }
}

/** One of two folders may be a link to the other. */
async function realFolder(path: string): Promise<string | undefined> {
  try {
    const real = await realpath(path)
    return (await stat(real)).isDirectory() ? real : undefined
  } catch {
    return undefined
  }
}
