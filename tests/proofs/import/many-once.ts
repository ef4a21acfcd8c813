// A fresh process: imports the sessions of a home into a folder, some of them twice, or searches the sessions of a folder, and prints what that took.
import { nodeFilePort, openFileStore } from '@tapetree/session/stores/file'
import { importAll } from '../../../packages/cli/src/commands/sessions/import-history.ts'
import { findSessions } from '../../../packages/cli/src/import/find-sessions.ts'

export interface Imported {
  sessions: number
  ms: number
  /** Sessions of the second import, which takes one project. */
  again: number
  unchanged: number
  againMs: number
  /** At most, the second import included. */
  rssBytes: number
}

export interface Searched {
  /** For each question. */
  ms: number[]
  hits: number
  rssBytes: number
}

const [how, folder = '', ...options] = process.argv.slice(2)
console.log(JSON.stringify(how === 'import' ? await importTwice(options[0] ?? '') : await search(options)))

/** Without syncs: a disk that waits is not what this measures. */
async function importTwice(home: string): Promise<Imported> {
  const port = { ...nodeFilePort(), dataSync: async () => {}, syncFolder: async () => {} }
  const io = { home, env: {}, cwd: home, signal: new AbortController().signal }
  await using store = openFileStore({ folder, port })
  const start = performance.now()
  const first = await importAll(store, await findSessions({ machine: io }), { io })
  const ms = performance.now() - start
  const again = await findSessions({ machine: io, project: '/home/someone/project7' })
  const second = await importAll(store, again, { io })
  return {
    sessions: first.filter(({ result }) => result?.outcome === 'imported').length,
    ms,
    again: second.length,
    unchanged: second.filter(({ result }) => result?.outcome === 'unchanged').length,
    againMs: performance.now() - start - ms,
    rssBytes: rssBytes(),
  }
}

async function search(questions: readonly string[]): Promise<Searched> {
  await using store = openFileStore({ folder })
  const ms: number[] = []
  let hits = 0
  for (const text of questions) {
    const start = performance.now()
    hits += (await store.search({ text, limit: 20 })).length
    ms.push(performance.now() - start)
  }
  return { ms, hits, rssBytes: rssBytes() }
}

function rssBytes(): number {
  return process.resourceUsage().maxRSS * 1024
}
