import { readFileSync } from 'node:fs'
import { cp, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { findSessions } from '../../../packages/cli/src/import/find-sessions.ts'
import { sourceNames, type FoundSession, type SourceName } from '../../../packages/cli/src/import/import-source.ts'
import { sourceLineOfText } from '../../../packages/cli/src/import/source-lines.ts'

const corpus = join(import.meta.dirname, '../../corpus/imports')

/** A recorded session, and its lines as text. Variations change the text. */
export interface Specimen {
  source: SourceName
  found: FoundSession
  lines: readonly string[]
}

/** A home with the recordings of all programs in it. */
export async function layOut(home: string): Promise<void> {
  for (const name of sourceNames) await cp(join(corpus, name), home, { recursive: true })
  const rows = readFileSync(join(corpus, 'opencode/opencode-rows.jsonl'), 'utf8').trim().split('\n')
  const folder = join(home, '.local/share/opencode')
  await mkdir(folder, { recursive: true })
  makeDatabase(
    join(folder, 'opencode.db'),
    rows.map((row) => JSON.parse(row) as TableRow),
  )
}

interface TableRow {
  table: string
  row: Record<string, string | number | null>
}

function makeDatabase(path: string, rows: readonly TableRow[]): void {
  const database = new DatabaseSync(path)
  // As the program has it: what was written last is beside the file.
  database.exec('PRAGMA journal_mode = WAL')
  for (const [table, all] of Map.groupBy(rows, (each) => each.table)) {
    const names = Object.keys(all[0]?.row ?? {})
    database.exec(`CREATE TABLE ${table} (${names.map((name) => `"${name}"`).join(', ')})`)
    const insert = database.prepare(`INSERT INTO ${table} VALUES (${names.map(() => '?').join(', ')})`)
    for (const { row } of all) insert.run(...names.map((name) => row[name] ?? null))
  }
  database.close()
}

export async function specimensIn(home: string): Promise<Specimen[]> {
  const { sessions, unusable } = await findSessions({ machine: { home, env: {} } })
  if (unusable.length > 0) throw new Error(`A recording cannot be used: ${JSON.stringify(unusable)}`)
  return Promise.all(
    sessions.map(async (found) => {
      const lines: string[] = []
      for await (const line of found.lines()) lines.push(line.type === 'read' ? JSON.stringify(line.value) : '')
      return { source: found.source, found, lines }
    }),
  )
}

/** The same session with other lines. */
export function withLines({ found }: Specimen, lines: readonly string[]): FoundSession {
  return {
    ...found,
    lines: async function* read() {
      for (const [index, text] of lines.entries()) if (text.trim() !== '') yield sourceLineOfText(text, index + 1)
    },
  }
}
