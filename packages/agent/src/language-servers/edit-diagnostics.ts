import { settledWithin } from '@tapetree/session/util/deadline'
import type { Clock } from '@tapetree/session/util/wait'
import { relative } from 'node:path'
import type { Access } from '../tools/tool.ts'
import { shownName } from '../tools/files/paths.ts'
import { isInside } from '../util/is-inside.ts'
import { maxOpenFiles, type Diagnostic } from './language-server.ts'
import type { Answers, LanguageServers } from './language-servers.ts'

/** All that a run waits for servers that do not answer. */
const patienceMs = 2000
/** Files whose errors are compared, of those that the session has read, or changed and was told about. */
const maxKnownFiles = 32
const maxPerFile = 20
const maxLines = 50

type Found = Map<string, Diagnostic[]>

/**
 * What language servers say about the files that a session changes. The model is told once, when it has stopped editing: in the middle
 * of a refactoring most errors are about to go away.
 */
export class EditDiagnostics {
  readonly #servers: LanguageServers
  readonly #place: { cwd: string; clock: Clock }
  /** Changed since their diagnostics were last read. */
  readonly #edited = new Set<string>()
  /** Changed, and their servers have not answered since. */
  readonly #untold = new Set<string>()
  /** The errors of each file when they were last read. A file of which none were read is absent. */
  readonly #known = new Map<string, ReadonlySet<string>>()
  /** Files that were read or changed, the newest last; all of `#untold`. */
  readonly #seen = new Set<string>()
  #hasEdited = false
  #publishedLate: number
  #reading: Promise<Answers | undefined> | undefined
  #waited: { runId: string; ms: number } = { runId: '', ms: 0 }

  constructor(servers: LanguageServers, place: { cwd: string; clock: Clock }) {
    this.#servers = servers
    this.#publishedLate = servers.publishedLate
    this.#place = place
  }

  /** For a subagent, which is told of its own edits. */
  forSubagent(): EditDiagnostics {
    return new EditDiagnostics(this.#servers, this.#place)
  }

  /** Called after each call of the model, with what it was allowed to touch. */
  afterCall(access: readonly Access[]): void {
    for (const touched of access) {
      if (touched.type !== 'read' && touched.type !== 'write') continue
      if (touched.type === 'read' && touched.isRecursive) continue
      if (!isInside(touched.path, this.#servers.workspace)) continue
      if (touched.type === 'write') {
        this.#hasEdited = true
        this.#edited.add(touched.path)
        this.#untold.add(touched.path)
      } else if (!this.#known.has(touched.path)) void this.#takeBaseline(touched.path)
      this.#see(touched.path)
    }
  }

  /** Called after the calls of each answer. Returns what the model is told: new errors, and undefined if there are none. */
  async report(
    { runId, isSettled }: { runId: string; isSettled: boolean },
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const isEditing = this.#hasEdited && !isSettled
    this.#hasEdited = false
    if (isEditing || (this.#untold.size === 0 && !this.#reading && !this.#hasNews)) return undefined
    const answers = await this.#read(runId, signal)
    if (!answers) return undefined
    const news = this.#newErrors(answers.found)
    for (const path of this.#untold) if (!answers.unanswered.includes(path)) this.#untold.delete(path)
    return news.size === 0 ? undefined : tell(news, this.#place.cwd)
  }

  /** For the tool: everything about these files, or about all that the session has seen. */
  async check(paths: readonly string[] | undefined): Promise<{ found: Found; problems: string[] }> {
    const wanted = paths ?? [...this.#seen]
    const { found: all } = await this.#servers.diagnose(wanted, { starts: true })
    const found = new Map(paths ? [...all].filter(([path]) => paths.includes(path)) : all)
    for (const [path, diagnostics] of found) this.#known.set(path, errorsOf(diagnostics))
    return { found, problems: this.#servers.problems }
  }

  #see(path: string): void {
    this.#seen.delete(path)
    this.#seen.add(path)
    for (const oldest of this.#excess()) {
      this.#seen.delete(oldest)
      this.#known.delete(oldest)
      this.#edited.delete(oldest)
      this.#untold.delete(oldest)
    }
  }

  /** The oldest, but first those about which nothing is left to tell. */
  #excess(): string[] {
    const { told = [], untold = [] } = Object.groupBy(this.#seen, (path) =>
      this.#untold.has(path) ? 'untold' : 'told',
    )
    const count = Math.max(told.length - maxKnownFiles, this.#seen.size - maxOpenFiles, 0)
    return [...told, ...untold].slice(0, count)
  }

  /** The errors before a change, if the server runs already. They are not reported as new later. */
  async #takeBaseline(path: string): Promise<void> {
    const answers = await this.#servers.diagnose([path], { starts: false }).catch(() => undefined)
    const errors = answers?.found.get(path)
    if (errors && this.#seen.has(path) && !this.#edited.has(path) && !this.#known.has(path))
      this.#known.set(path, errorsOf(errors))
  }

  /** A server has published more after it was read. */
  get #hasNews(): boolean {
    return this.#servers.publishedLate !== this.#publishedLate
  }

  /** A slow server goes on in the background, and its answer is told later. */
  async #read(runId: string, signal: AbortSignal): Promise<Answers | undefined> {
    if (this.#waited.runId !== runId) this.#waited = { runId, ms: 0 }
    for (;;) {
      if (!this.#reading) {
        if (this.#edited.size === 0 && !this.#hasNews) return undefined
        const starts = this.#edited.size > 0
        this.#edited.clear()
        this.#publishedLate = this.#servers.publishedLate
        this.#reading = this.#servers.diagnose([...this.#seen], { starts }).catch(() => undefined)
      }
      const { clock } = this.#place
      const begun = clock.now()
      const ms = Math.max(0, patienceMs - this.#waited.ms)
      const outcome = await settledWithin(this.#reading, { ms, clock, signal })
      // Also if it has answered: it may fail at each start, or flood in between.
      this.#waited.ms += clock.now() - begun
      if (outcome !== 'settled') return undefined
      const answers = await this.#reading
      this.#reading = undefined
      // A file has changed since it was read: what was found about it is not true any more.
      if (this.#edited.size === 0) return answers
    }
  }

  /** All new errors of changed files; of others only if their earlier errors are known. */
  #newErrors(found: Found): Found {
    const news: Found = new Map()
    for (const [path, diagnostics] of found) {
      const known = this.#known.get(path)
      this.#known.set(path, errorsOf(diagnostics))
      if (!known && !this.#untold.has(path)) continue
      const added = diagnostics.filter((each) => each.severity === 'error' && !known?.has(each.message))
      if (added.length > 0) news.set(path, added)
    }
    return news
  }
}

/** Lines move with every change, so an error is known by its message. */
function errorsOf(diagnostics: readonly Diagnostic[]): ReadonlySet<string> {
  return new Set(diagnostics.filter(({ severity }) => severity === 'error').map(({ message }) => message))
}

function tell(news: Found, cwd: string): string {
  return [
    '<diagnostics>',
    'After your changes the language server reports new errors:',
    ...diagnosticLines(news, cwd),
    '</diagnostics>',
  ].join('\n')
}

/** At most so many lines, and at most so many of one file; says how many are left out. */
export function diagnosticLines(found: ReadonlyMap<string, readonly Diagnostic[]>, cwd: string): string[] {
  const all = [...found].flatMap(([path, diagnostics]) => {
    const name = shownName(isInside(path, cwd) ? relative(cwd, path) : path)
    const lines = diagnostics
      .slice(0, maxPerFile)
      .map(({ line, column, severity, message }) => `${name}:${line}:${column} ${severity}: ${message}`)
    const more = diagnostics.length - lines.length
    return (more > 0 ? [...lines, `${name}: and ${more} more`] : lines).map(harmless)
  })
  return all.length > maxLines
    ? [...all.slice(0, maxLines), `[${all.length - maxLines} more lines are left out.]`]
    : all
}

/** A line cannot end the element that it is in. */
function harmless(line: string): string {
  return line.replaceAll(/<(?=\/diagnostics)/gi, '&lt;')
}
