import type { Dirent } from 'node:fs'
import { lstat, open, readdir, readFile, stat } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join } from 'node:path'
import { ClaudeCodeReader, claudeCodeLines, claudeCodeSession } from './claude-code.ts'
import { CodexReader, codexLines, codexSession } from './codex.ts'
import { GeminiReader, geminiLines, geminiSession, geminiWhole } from './gemini.ts'
import {
  sourceNames,
  sourceTitles,
  type Found,
  type LineKind,
  type SourceName,
  type SourceReader,
  type SourceSession,
} from './import-source.ts'
import { OpencodeReader, opencodeLines } from './opencode.ts'
import { findInDatabase, findInStorage } from './opencode-rows.ts'
import { PiReader, piLines, piSession } from './pi.ts'
import { maxLineBytes, readJsonLines, sourceLineOfText, type SourceLine } from './source-lines.ts'
import { words, type Values } from './values.ts'

export interface Source {
  /** As people call the program. */
  title: string
  /** Where its sessions may be. */
  folders: (machine: Machine) => string[]
  /** What becomes of each kind of line. */
  kinds: readonly LineKind[]
  find: (folder: string) => AsyncGenerator<Found>
  /** The session in one file; undefined if it is not one of this program. */
  recognize: (path: string) => Promise<Found[] | undefined>
  reader: (session: SourceSession) => SourceReader
}

export interface Machine {
  home: string
  env: Readonly<Record<string, string | undefined>>
}

export const sources: Record<SourceName, Source> = {
  'claude-code': {
    title: sourceTitles['claude-code'],
    folders: ({ home, env }) => {
      const chosen = absolute(env['CLAUDE_CONFIG_DIR'], '')
      const known = [join(home, '.claude'), join(absolute(env['XDG_CONFIG_HOME'], join(home, '.config')), 'claude')]
      return (chosen === '' ? known : [chosen]).map((each) => join(each, 'projects'))
    },
    kinds: claudeCodeLines,
    find: (folder) => findFiles('claude-code', folder, (path) => path.endsWith('.jsonl')),
    recognize: (path) =>
      recognizeLines('claude-code', path, (line) => 'sessionId' in line && ('uuid' in line || 'operation' in line)),
    reader: ({ subagent = false }) => new ClaudeCodeReader({ isSubagent: subagent }),
  },
  codex: {
    title: sourceTitles.codex,
    folders: ({ home, env }) => [absolute(env['CODEX_HOME'], join(home, '.codex'))],
    kinds: codexLines,
    find: (folder) => findFiles('codex', folder, isRollout, ['sessions', 'archived_sessions']),
    // Its first versions wrote a header without a type.
    recognize: (path) =>
      recognizeLines(
        'codex',
        path,
        (line) => line['type'] === 'session_meta' || (isRollout(path) && 'id' in line && 'timestamp' in line),
      ),
    reader: () => new CodexReader(),
  },
  pi: {
    title: sourceTitles.pi,
    folders: ({ home, env }) => [join(absolute(env['PI_CODING_AGENT_DIR'], join(home, '.pi', 'agent')), 'sessions')],
    kinds: piLines,
    find: (folder) => findFiles('pi', folder, (path) => path.endsWith('.jsonl')),
    recognize: (path) =>
      recognizeLines('pi', path, (line) => line['type'] === 'session' && line['seq'] === undefined && 'cwd' in line),
    reader: () => new PiReader(),
  },
  opencode: {
    title: sourceTitles.opencode,
    folders: ({ home, env }) => [join(absolute(env['XDG_DATA_HOME'], join(home, '.local', 'share')), 'opencode')],
    kinds: opencodeLines,
    find: findOpencode,
    recognize: async (path) => {
      if (!/\.(?:db|sqlite)$/.test(path)) return undefined
      return collect(findInDatabase(path))
    },
    reader: () => new OpencodeReader(),
  },
  gemini: {
    title: sourceTitles.gemini,
    folders: ({ home, env }) => [join(absolute(env['GEMINI_CLI_HOME'], home), '.gemini', 'tmp')],
    kinds: geminiLines,
    find: (folder) => findFiles('gemini', folder, (path) => /[\\/]chats[\\/].*\.jsonl?$/.test(path)),
    recognize: (path) => recognizeLines('gemini', path, (line) => 'sessionId' in line && 'startTime' in line),
    reader: () => new GeminiReader(),
  },
}

/** The sessions in a folder or a file. */
export async function findAt(path: string, from: SourceName | undefined): Promise<Found[]> {
  const info = await stat(path)
  const names = from === undefined ? sourceNames : [from]
  const found: Found[] = []
  if (info.isDirectory()) {
    for await (const file of filesIn(path, isSessionFile)) found.push(...((await recognized(file, names)) ?? []))
    if (names.includes('opencode')) found.push(...(await collect(findInStorage(join(path, 'storage')))))
    return found
  }
  return (await recognized(path, names)) ?? []
}

async function recognized(path: string, names: readonly SourceName[]): Promise<Found[] | undefined> {
  for (const name of names) {
    const found = await sources[name].recognize(path)
    if (found) return found
  }
  return undefined
}

function isSessionFile(path: string): boolean {
  return /\.(?:jsonl|db)$/.test(path) || /[\\/]chats[\\/].*\.json$/.test(path)
}

async function* findOpencode(folder: string): AsyncGenerator<Found> {
  const database = join(folder, 'opencode.db')
  const inDatabase = new Set<string>()
  for await (const each of findInDatabase(database)) {
    if (each.type === 'session') inDatabase.add(each.found.session.id)
    yield each
  }
  // A newer version has copied the files of older ones into its database.
  for await (const each of findInStorage(join(folder, 'storage'))) {
    if (each.type !== 'session' || !inDatabase.has(each.found.session.id)) yield each
  }
}

async function* findFiles(
  source: SourceName,
  folder: string,
  isOurs: (path: string) => boolean,
  inside: readonly string[] = ['.'],
): AsyncGenerator<Found> {
  for (const part of inside) {
    for await (const path of filesIn(join(folder, part), isOurs)) yield await foundIn(source, path)
  }
}

async function recognizeLines(
  source: SourceName,
  path: string,
  isOurs: (line: Values) => boolean,
): Promise<Found[] | undefined> {
  if (!/\.jsonl?$/.test(path)) return undefined
  try {
    const { lines } = await headOf(path)
    return lines.some(isOurs) ? [await foundIn(source, path)] : undefined
  } catch (error) {
    return [unusable(source, path, error instanceof Error ? error.message : String(error))]
  }
}

function isRollout(path: string): boolean {
  return /^rollout-.*\.jsonl$/.test(basename(path))
}

async function foundIn(source: SourceName, path: string): Promise<Found> {
  try {
    const { lines, bytes, modified } = await headOf(path)
    const session = await sessionOf(source, path, lines)
    if (!session) return unusable(source, path, 'its first lines do not tell which session it is')
    return {
      type: 'session',
      found: { source, session, path, bytes, modified, lines: (signal) => linesOf(source, path, signal) },
    }
  } catch (error) {
    return unusable(source, path, error instanceof Error ? error.message : String(error))
  }
}

function unusable(source: SourceName, path: string, reason: string): Found {
  return { type: 'unusable', file: { source, path, reason } }
}

async function sessionOf(
  source: SourceName,
  path: string,
  lines: readonly Values[],
): Promise<SourceSession | undefined> {
  switch (source) {
    case 'claude-code':
      return claudeCodeSession(lines, basename(path))
    case 'codex':
      return codexSession(lines, basename(path))
    case 'pi':
      return piSession(lines, (parent) => /_([^_/\\]+)\.jsonl$/.exec(parent)?.[1])
    case 'gemini':
      return geminiSession(lines, { cwd: await geminiFolderOf(path), parent: geminiParentOf(path) })
    case 'opencode':
      return undefined
    default:
      return source satisfies never
  }
}

function linesOf(source: SourceName, path: string, signal?: AbortSignal): AsyncGenerator<SourceLine> {
  return source === 'gemini' && path.endsWith('.json') ? wholeLines(path) : readJsonLines(path, signal)
}

/** The messages of one JSON file. */
async function* wholeLines(path: string): AsyncGenerator<SourceLine> {
  const { size } = await stat(path)
  const whole: SourceLine =
    size > maxLineBytes
      ? { type: 'unreadable', number: 1, reason: 'too-long' }
      : sourceLineOfText(await readFile(path, 'utf8'), 1)
  if (whole.type === 'unreadable') {
    yield whole
    return
  }
  for (const [index, value] of geminiWhole(whole.value).entries())
    yield sourceLineOfText(JSON.stringify(value), index + 1)
}

/** The folder of a project is in a file beside its sessions. */
async function geminiFolderOf(path: string): Promise<string | undefined> {
  for (let folder = dirname(path), up = 0; up < 4; folder = dirname(folder), up++) {
    if (basename(folder) !== 'chats') continue
    const file = join(dirname(folder), '.project_root')
    const info = await lstat(file).catch(() => undefined)
    if (!info?.isFile() || info.size > maxPathBytes) return undefined
    const said = await readFile(file, 'utf8').catch(() => '')
    return isAbsolute(said.trim()) ? said.trim() : undefined
  }
  return undefined
}

const maxPathBytes = 8192

/** The session whose subagent wrote the file. */
function geminiParentOf(path: string): string | undefined {
  const folder = dirname(path)
  return basename(dirname(folder)) === 'chats' ? basename(folder) : undefined
}

interface Head {
  /** The first complete lines that are JSON, without the long values of a line that was cut. */
  lines: Values[]
  bytes: number
  modified: string
}

const headBytes = 256 * 1024

async function headOf(path: string): Promise<Head> {
  const handle = await open(path, 'r')
  try {
    const info = await handle.stat()
    if (!info.isFile()) throw new Error('it is not a regular file')
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(Math.min(headBytes, info.size)))
    const text = buffer.toString('utf8', 0, bytesRead).replace(/^\uFEFF/, '')
    const parts = text.split('\n').slice(0, 64)
    const lines = parts.flatMap((line, index) => {
      const read = line.trim() === '' ? undefined : sourceLineOfText(line, index + 1)
      if (read?.type === 'read') return [read.value]
      const isCut = index === parts.length - 1 && info.size > bytesRead
      return isCut || path.endsWith('.json') ? [salvaged(index === 0 || !path.endsWith('.json') ? line : text)] : []
    })
    return { lines, bytes: info.size, modified: info.mtime.toISOString() }
  } finally {
    await handle.close()
  }
}

/** The members that identify a session, from a line that is too long to be read as a whole. */
function salvaged(line: string): Values {
  const found: Values = {}
  for (const [, name = '', value = ''] of line.matchAll(
    /"(type|id|sessionId|uuid|cwd|startTime|parentSession)":\s*("(?:[^"\\]|\\.){0,4096}")/g,
  )) {
    if (!(name in found)) found[name] = words(parsedText(value))
  }
  return found['type'] === 'session_meta' ? { type: 'session_meta', payload: found } : found
}

function parsedText(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

/** Regular files below a folder, without following links. */
async function* filesIn(folder: string, isWanted: (path: string) => boolean, depth = 8): AsyncGenerator<string> {
  let entries: Dirent[]
  try {
    entries = await readdir(folder, { withFileTypes: true })
  } catch {
    return
  }
  entries.sort((left, right) => (left.name < right.name ? -1 : 1))
  for (const entry of entries) {
    const path = join(folder, entry.name)
    if (entry.isFile() && isWanted(path)) yield path
    else if (entry.isDirectory() && depth > 0) yield* filesIn(path, isWanted, depth - 1)
  }
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

function absolute(path: string | undefined, otherwise: string): string {
  return path !== undefined && isAbsolute(path) ? path : otherwise
}
