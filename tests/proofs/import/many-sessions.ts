import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Listed } from '../../../bench/list/list-once.ts'
import { writeManySessions } from '../../../bench/session/generate-many.ts'
import type { FigureContext } from '../../../scripts/figure/figure.ts'
import { median } from '../../../scripts/figure/percentile.ts'
import type { Imported, Searched } from './many-once.ts'

/** What lists and searches cost beyond a process that only opens the store. */
interface Cost {
  listMs: number
  listMegabytes: number
  buildSeconds: number
  buildMegabytes: number
  searchMs: number
  searchMegabytes: number
}

/**
 * Lists and searches imported sessions, and the same conversations as sessions of our own beside them: both should cost the same. They are
 * those of `bench list` and `bench search`, as pi would have written them.
 */
export async function measureMany(
  sessions: number,
  context: Pick<FigureContext, 'say' | 'random' | 'temporaryFolder'>,
): Promise<{ problems: string[]; figures: Record<string, number> }> {
  const { say, random } = context
  const [home, native] = [await context.temporaryFolder(), await context.temporaryFolder()]
  const { ids, words } = writeManySessions(native, { sessions, entries: 20, wordsPerEntry: 40, random })
  for (const id of ids) writeAsPi({ home, native, id })
  const store = join(home, 'sessions')
  const imported = await once<Imported>('import', store, home)
  say(
    `${imported.sessions} sessions imported in ${(imported.ms / 1000).toFixed(0)} s, ` +
      `${(imported.rssBytes / 1e6).toFixed(0)} MB at most; ${imported.again} of them again, with nothing new: ` +
      `${(imported.againMs / 1000).toFixed(1)} s`,
  )
  const questions = Array.from({ length: 20 }, () => words[Math.floor(1000 ** random() * 10) - 1] as string)
  const theirs = await costOf(store, questions)
  say(`imported sessions: ${shown(theirs)}`)
  const ours = await costOf(native, questions)
  say(`sessions of our own: ${shown(ours)}`)
  const problems: string[] = []
  if (imported.sessions !== sessions) problems.push(`of ${sessions} sessions, ${imported.sessions} were imported`)
  if (imported.unchanged !== imported.again)
    problems.push(`of ${imported.again} sessions, ${imported.unchanged} were unchanged by a second import`)
  for (const name of ['listMegabytes', 'buildMegabytes', 'searchMegabytes'] as const) {
    if (theirs[name] > 1.5 * ours[name] + noiseMegabytes)
      problems.push(`${name} is ${theirs[name]} for imported sessions, and ${ours[name]} for others`)
  }
  if (theirs.listMegabytes > maxListMegabytes) problems.push(`a list takes ${theirs.listMegabytes} MB`)
  return {
    problems,
    figures: {
      many: sessions,
      many_import_s: round(imported.ms / 1000),
      many_import_mb: round(imported.rssBytes / 1e6),
      many_list_ms: theirs.listMs,
      many_list_mb: theirs.listMegabytes,
      many_list_mb_ratio: round(theirs.listMegabytes / ours.listMegabytes),
      many_search_p50_ms: theirs.searchMs,
      many_search_mb: theirs.searchMegabytes,
      many_search_mb_ratio: round(theirs.searchMegabytes / ours.searchMegabytes),
      many_build_mb: theirs.buildMegabytes,
      many_build_mb_ratio: round(theirs.buildMegabytes / ours.buildMegabytes),
    },
  }
}

/** The limit that `bench list` has for 100,000 sessions. */
const maxListMegabytes = 600
/** Two processes that do the same differ by this much. */
const noiseMegabytes = 15

function writeAsPi({ home, native, id }: { home: string; native: string; id: string }): void {
  const log = readFileSync(join(native, id, 'events.jsonl'), 'utf8')
  const lines = log.split('\n').flatMap((line): object[] => {
    if (line === '') return []
    const { type, timestamp, cwd, id: own, parent_id: parentId, message } = JSON.parse(line) as OwnLine
    if (type === 'session') return [{ type, version: 3, id, timestamp, cwd }]
    if (type !== 'message' || !message) return []
    const content = message.content.map(({ text }) => ({ type: 'text', text: text.content }))
    return [{ type, id: own, parentId, timestamp, message: { role: message.role, content } }]
  })
  const folder = join(home, '.pi/agent/sessions', `--project${Number.parseInt(id.slice(-8), 16) % 40}--`)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, `then_${id}.jsonl`), lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
}

interface OwnLine {
  type: string
  timestamp: string
  cwd?: string
  id: string
  parent_id?: string | null
  message?: { role: string; content: { text: { content: string } }[] }
}

async function costOf(folder: string, questions: readonly string[]): Promise<Cost> {
  // The first list builds its index, as the first search does.
  await listOnce(folder, 'list')
  const rounds = 3
  const samples: Record<'baseline' | 'list', Listed[]> = { baseline: [], list: [] }
  for (let round = 0; round < rounds; round++) {
    for (const how of ['baseline', 'list'] as const) samples[how].push(await listOnce(folder, how))
  }
  const over = (value: (listed: Listed) => number): number =>
    median(samples.list.map(value)) - median(samples.baseline.map(value))
  const built = await once<Searched>('search', folder, 'everything')
  const asked: Searched[] = []
  for (let round = 0; round < rounds; round++) asked.push(await once<Searched>('search', folder, ...questions))
  const bareBytes = median(samples.baseline.map(({ rssBytes }) => rssBytes))
  return {
    listMs: round(over(({ sinceStartMs }) => sinceStartMs)),
    listMegabytes: round(over(({ rssBytes }) => rssBytes) / 1e6),
    buildSeconds: round(median(built.ms) / 1000),
    buildMegabytes: round((built.rssBytes - bareBytes) / 1e6),
    searchMs: round(median(asked.flatMap(({ ms }) => ms))),
    searchMegabytes: round((median(asked.map(({ rssBytes }) => rssBytes)) - bareBytes) / 1e6),
  }
}

function shown(cost: Cost): string {
  return (
    `a list ${cost.listMs} ms and ${cost.listMegabytes} MB, the index of words ${cost.buildSeconds} s and ${cost.buildMegabytes} MB, ` +
    `a search ${cost.searchMs} ms and ${cost.searchMegabytes} MB`
  )
}

function listOnce(folder: string, how: Listed['how']): Promise<Listed> {
  return inFreshProcess<Listed>(join(import.meta.dirname, '../../../bench/list/list-once.ts'), [folder, how])
}

function once<T>(...how: readonly string[]): Promise<T> {
  return inFreshProcess<T>(join(import.meta.dirname, 'many-once.ts'), how)
}

async function inFreshProcess<T>(program: string, options: readonly string[]): Promise<T> {
  const { stdout } = await promisify(execFile)(process.execPath, [...process.execArgv, program, ...options])
  return JSON.parse(stdout) as T
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}
