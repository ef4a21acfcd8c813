import type { WaitingFor, SessionHandle } from '@tapetree/client'
import type { SessionInfo } from '@tapetree/session'
import { isPausing } from '@tapetree/session/screen'
import type { SessionSource } from '../../session-source.ts'
import { footerLine } from '../views/footer.ts'
import { GitBranch } from './git-branch.ts'
import { queueOf } from './queue-state.ts'
import { waitingLines } from '../views/waiting-lines.ts'
import { statusLine } from '../views/status-line.ts'
import type { Appearance } from './appearance.ts'
import type { CurrentSession } from '../chat/current-session.ts'
import type { ToolCallPart, Transcript, TreeNode } from '@tapetree/session/view'
import { describeEntry } from '../../text/describe-entry.ts'
import { JobFeed } from './job-feed.ts'
import type { JobNews, TaskNews } from '../views/item-context.ts'
import { sidebarRows, type NamedTask, type SessionWork, type SidebarRow } from '../views/sidebar.ts'

export interface SessionLinesOptions {
  session: CurrentSession
  source: Pick<SessionSource, 'models' | 'list' | 'tree' | 'jobs'>
  appearance: Appearance
  now: () => number
  onChange: () => void
}

/** Lines about the session outside the conversation: the activity of its run, and the footer. */
export class SessionLines {
  readonly #options: SessionLinesOptions
  #waiting: { value: WaitingFor | null; since: number } | undefined
  #news: { transcript: Transcript; at: number } | undefined
  /** By `provider/id`; undefined while it is loading or if it is unknown. */
  readonly #windows = new Map<string, number | undefined>()

  readonly #subagents: Subagents
  readonly #jobs: JobFeed
  readonly #branch: GitBranch
  /** As they were last drawn. */
  #beside: readonly SidebarRow[] = []

  constructor(options: SessionLinesOptions) {
    this.#options = options
    this.#subagents = new Subagents(options)
    this.#jobs = new JobFeed(options)
    this.#branch = new GitBranch(options.now)
  }

  status(width: number): string[] {
    const { session, appearance, now } = this.#options
    const { handle } = session
    if (!handle) return []
    const run = handle.state('run')
    const value = run?.waitingFor ?? null
    if (this.#waiting?.value !== value) this.#waiting = { value, since: now() }
    if (this.#news?.transcript !== handle.transcript) this.#news = { transcript: handle.transcript, at: now() }
    const line = statusLine({
      transcript: handle.transcript,
      run,
      waitingSince: this.#waiting.since,
      newsAt: this.#news.at,
      width,
      theme: appearance.theme,
      now: now(),
    })
    return line === undefined ? [] : [line]
  }

  /** Messages that wait for their delivery. */
  waiting(width: number): string[] {
    const { session, appearance } = this.#options
    const { handle } = session
    if (!handle) return []
    const { messages, hold } = queueOf(handle)
    return waitingLines(messages, { theme: appearance.theme, width, isHeld: hold !== null })
  }

  /** Whether the footer counts down the pause of a language server. */
  get isPausing(): boolean {
    const { session, now } = this.#options
    return session.handle?.state('language_servers')?.some((server) => isPausing(server, now())) === true
  }

  footer(width: number): string {
    const { session, appearance, now } = this.#options
    const { handle, access } = session
    if (!handle || !access) return ''
    const { transcript } = handle
    const own = handle.state('usage') ?? transcript.usage
    return footerLine({
      config: handle.state('config'),
      usage: { cost: own.cost + this.#subagents.costOf(handle, session.cwd), tokens: tokensOf(own) },
      folder: session.cwd,
      branch: this.#branch.of(session.localFolder),
      name: transcript.name === '' ? undefined : transcript.name,
      contextTokens: contextTokensOf(transcript),
      contextWindow: this.#window(),
      languageServers: handle.state('language_servers'),
      run: transcript.run,
      access,
      presence: handle.state('presence'),
      width,
      theme: appearance.theme,
      now: now(),
    })
  }

  /** Beside the conversation on a wide screen. */
  sidebar({ width, rows, work }: { width: number; rows: number; work: SessionWork }): string[] {
    const { session, appearance } = this.#options
    const { handle } = session
    const { theme } = appearance
    if (!handle) return Array.from({ length: rows }, () => '')
    const { transcript } = handle
    const own = handle.state('usage') ?? transcript.usage
    this.#beside = sidebarRows({
      name: transcript.name === '' ? undefined : transcript.name,
      folder: session.cwd,
      branch: this.#branch.of(session.localFolder),
      contextTokens: contextTokensOf(transcript),
      contextWindow: this.#window(),
      tokens: tokensOf(own),
      cost: own.cost + this.#subagents.costOf(handle, session.cwd),
      plan: transcript.plan,
      work,
      subagents: this.#subagents.all(),
      theme,
      width,
      rows,
    })
    return this.#beside.map(({ text }) => text)
  }

  /** What the subagent with this description does, as far as it is known. */
  taskNews(description: string): TaskNews | undefined {
    return this.#subagents.newsOf(description)
  }

  /** The state of a background job, as far as it is known. */
  jobNews(jobId: string): JobNews | undefined {
    return this.#jobs.newsOf(jobId)
  }

  /** Nothing is followed any more. */
  stop(): void {
    this.#jobs.stop()
  }

  /** The session of the subagent that a call has started. Undefined unless exactly one fits: several may have the same task. */
  async subagentOf(task: ToolCallPart): Promise<string | undefined> {
    const { handle, cwd } = this.#options.session
    return handle && this.#subagents.idOf(task, { sessionId: handle.sessionId, cwd })
  }

  /** The session of the subagent that a row of the sidebar is about. */
  subagentBeside(row: number): string | undefined {
    return this.#beside[row]?.subagentId
  }

  /** The name of a subagent, from the id of its session. */
  subagentName(sessionId: string): string | undefined {
    return this.#subagents.nameOf(sessionId)
  }

  /** The context window of the current model. Requested once, and only when there is usage to compare with it. */
  #window(): number | undefined {
    const { session, source, onChange } = this.#options
    const model = session.handle?.state('config')?.model
    if (!model || session.handle?.transcript.usage.totalTokens === 0) return undefined
    const reference = `${model.provider}/${model.modelId}`
    if (!this.#windows.has(reference)) {
      this.#windows.set(reference, undefined)
      void source.models().then(
        (models) => {
          this.#windows.set(reference, models.find((each) => each.reference === reference)?.contextTokens)
          onChange()
        },
        // Without a list of models there is no gauge. Opening the list shows the error.
        () => undefined,
      )
    }
    return this.#windows.get(reference)
  }
}

/** The server counts them in another form than the log. */
function tokensOf(usage: { tokens: number } | { totalTokens: number }): number {
  return 'tokens' in usage ? usage.tokens : usage.totalTokens
}

const searched = 200

/** Tokens of the last request and its answer, as the provider counted them: the size of the next context. */
function contextTokensOf({ path }: Transcript): number | undefined {
  const { items } = path
  for (let index = items.length - 1; index >= Math.max(0, items.length - searched); index--) {
    const item = items.at(index)
    // Messages before it are no longer sent.
    if (item?.type === 'compaction') return undefined
    if (item?.type !== 'assistant' || !item.usage) continue
    const { inputTokens = 0, outputTokens = 0, totalTokens } = item.usage
    return totalTokens ?? inputTokens + outputTokens
  }
  return undefined
}

interface SubagentsOptions {
  source: Pick<SessionSource, 'list' | 'tree'>
  now: () => number
  onChange: () => void
}

interface Parent {
  sessionId: string
  cwd: string | undefined
}

const askEveryMs = 2000
/** An earlier subagent call has ended and its cost is known. */
const recentItems = 20
const listed = 500
/** So much of the first message is in a list. */
const listedText = 200
/** The logs of this many running subagents are read. */
const followed = 8

/**
 * The subagents of a session: their cost in US dollars, and what they do. They have their own logs, so this lists sessions when a session is
 * shown, and periodically while a recent answer calls a subagent.
 */
class Subagents {
  readonly #options: SubagentsOptions
  #sessionId: string | undefined
  #cost = 0
  #children: readonly SessionInfo[] = []
  /** The last action of each and its tokens, by the id of its session. */
  readonly #actions = new Map<string, Pick<TaskNews, 'text' | 'tokens'>>()
  #asked: { seq: number; atMs: number } | undefined
  #isAsking = false

  constructor(options: SubagentsOptions) {
    this.#options = options
  }

  /** As far as it is known; `onChange` is called when more is. */
  costOf(handle: SessionHandle, cwd: string | undefined): number {
    if (handle.sessionId !== this.#sessionId) {
      this.#sessionId = handle.sessionId
      this.#cost = 0
      this.#children = []
      this.#actions.clear()
      this.#asked = undefined
    }
    if (!this.#isAsking && this.#isDue(handle)) void this.#ask(handle, cwd)
    return this.#cost
  }

  /** The description of a task is the name of its session. */
  newsOf(description: string): TaskNews | undefined {
    const child = this.#children.findLast(({ name }) => name === description)
    if (!child) return undefined
    const { id, cost, messageCount } = child
    return { text: 'starting', ...this.#actions.get(id), cost, messageCount }
  }

  /** The newest first. */
  all(): NamedTask[] {
    return this.#children
      .map(({ id, name, status, cost, messageCount }) => ({
        id,
        name,
        isRunning: status !== 'idle',
        text: 'starting',
        ...this.#actions.get(id),
        cost,
        messageCount,
      }))
      .toReversed()
  }

  async idOf({ input: { description, prompt } }: ToolCallPart, parent: Parent): Promise<string | undefined> {
    if (typeof prompt !== 'string') return undefined
    const start = prompt.trim().slice(0, listedText)
    const children = await this.#childrenOf(parent)
    const [child, ...others] = children.filter(({ name, firstText }) => name === description && firstText === start)
    return others.length === 0 ? child?.id : undefined
  }

  nameOf(sessionId: string): string | undefined {
    return this.#children.find(({ id }) => id === sessionId)?.name
  }

  #isDue({ transcript }: SessionHandle): boolean {
    if (!this.#asked) return true
    const { seq, atMs } = this.#asked
    if (this.#options.now() - atMs < askEveryMs || (transcript.seq === seq && !transcript.run)) return false
    return transcript.path.items
      .slice(-recentItems)
      .some(
        (item) =>
          item.type === 'assistant' && item.parts.some((part) => part.type === 'tool_call' && part.name === 'task'),
      )
  }

  async #ask({ sessionId, transcript: { seq } }: SessionHandle, cwd: string | undefined): Promise<void> {
    const { now, onChange } = this.#options
    this.#isAsking = true
    this.#asked = { seq, atMs: now() }
    const own = await this.#childrenOf({ sessionId, cwd })
    const running = own.filter(({ status }) => status !== 'idle').slice(0, followed)
    const actions = await Promise.all(running.map(async ({ id }) => [id, await this.#actionOf(id)] as const))
    this.#isAsking = false
    if (sessionId !== this.#sessionId) return
    this.#children = own.toReversed()
    for (const [id, action] of actions) if (action !== undefined) this.#actions.set(id, action)
    // The list has only the newest sessions: a known cost never shrinks.
    this.#cost = Math.max(
      this.#cost,
      own.reduce((sum, each) => sum + each.cost, 0),
    )
    if (own.length > 0) onChange()
  }

  /** The newest first. If listing fails now, it is retried later. */
  async #childrenOf({ sessionId, cwd }: Parent): Promise<SessionInfo[]> {
    const query = { limit: listed, ...(cwd !== undefined && { cwd }) }
    const sessions = await this.#options.source.list(query).catch(() => [])
    return sessions.filter(({ subagent, parentSession }) => subagent && parentSession === sessionId)
  }

  /** Its newest call or text, and the tokens of all its answers. */
  async #actionOf(sessionId: string): Promise<Pick<TaskNews, 'text' | 'tokens'> | undefined> {
    const roots = await this.#options.source.tree(sessionId).catch((): TreeNode[] => [])
    let text: string | undefined
    let tokens = 0
    for (let node = roots.at(-1); node; node = node.children.at(-1)) {
      const { entry } = node
      if (entry.type !== 'message' || entry.message.role !== 'assistant') continue
      text = describeEntry(entry).words
      const { inputTokens = 0, outputTokens = 0, totalTokens } = entry.message.usage ?? {}
      tokens += totalTokens ?? inputTokens + outputTokens
    }
    return text === undefined ? undefined : { text, tokens }
  }
}
