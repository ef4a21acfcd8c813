import { elapsedText } from './calls.ts'

/** What the model was told about its edits. */
export interface ToldDiagnostics {
  /** `2 errors in src/a.ts`. */
  title: string
  /** One for each error, and one where some are left out. */
  lines: string[]
}

const element = /^<diagnostics>\n.*\n([^]*)\n<\/diagnostics>$/
const diagnostic = /^(.+?):\d+:\d+ error: /
const more = /: and (\d+) more$/
const leftOut = /^\[\d+ more lines are left out\.\]$/

/** Reads the text of a message to the model. Undefined if it is about something else. */
export function toldDiagnostics(text: string): ToldDiagnostics | undefined {
  const lines = element.exec(text)?.[1]?.split('\n')
  if (!lines) return undefined
  const files = new Set<string>()
  let count = 0
  for (const line of lines) {
    const [, file] = diagnostic.exec(line) ?? []
    if (file === undefined) count += Number(more.exec(line)?.[1] ?? 0)
    else {
      files.add(file)
      count++
    }
  }
  const [first = ''] = files
  const isCut = lines.some((line) => leftOut.test(line))
  const where = files.size === 1 ? first : `${files.size} files`
  return { title: `${isCut ? 'More than ' : ''}${countOf(count, 'error')} in ${where}`, lines }
}

/** The state of a language server, as clients get it. */
export interface ShownServer {
  name: string
  status: 'starting' | 'running' | 'failed'
  retryAt?: string | null
  errors: number
  warnings: number
}

/** `typescript 2 errors`. `now` is in milliseconds since the epoch. */
export function serverText(server: ShownServer, now: number): string {
  const { name, status, errors, warnings } = server
  if (status === 'starting') return `${name} starting`
  if (status === 'failed') return `${name} failed, ${restartText(server, now)}`
  const found = [
    ...(errors > 0 ? [countOf(errors, 'error')] : []),
    ...(warnings > 0 ? [countOf(warnings, 'warning')] : []),
  ]
  return `${name} ${found.length > 0 ? found.join(', ') : 'no errors'}`
}

/** Whether its text changes with the time. */
export function isPausing({ status, retryAt }: ShownServer, now: number): boolean {
  return status === 'failed' && retryAt != null && Date.parse(retryAt) > now
}

/** It is started when it is needed, so the end of its pause starts nothing. */
function restartText(server: ShownServer, now: number): string {
  if (server.retryAt == null) return 'not restarted'
  if (!isPausing(server, now)) return 'restarts with the next edit'
  return `can restart in ${elapsedText(Date.parse(server.retryAt) - now + 999)}`
}

function countOf(count: number, one: string): string {
  return `${count.toLocaleString('en')} ${one}${count === 1 ? '' : 's'}`
}
