import type { SearchHit, SessionInfo, SessionQuery } from '@tapetree/session'
import type { Comparison } from '@tapetree/session/screen'
import type { TreeNode } from '@tapetree/session/view'
import type { BackgroundJob, OfferedModel, OpenedSession, SessionAccess, SessionSource } from '../../session-source.ts'
import { ScriptedHandle } from './scripted-handle.ts'

/** Sessions, models and files defined by a test. Records its calls in `calls`. */
export class ScriptedSource implements SessionSource {
  readonly calls: string[] = []
  readonly handles = new Map<string, ScriptedHandle>()
  readonly images: { bytes: Uint8Array; mediaType: string }[] = []
  sessions: SessionInfo[] = []
  hits: SearchHit[] = []
  nodes: TreeNode[] = []
  offered: OfferedModel[] = []
  paths: string[] = []
  comparison: Comparison | undefined
  /** Commands in the background, with their output. */
  readonly running = new Map<string, string>()
  isClosed = false

  opened(sessionId: string, access: SessionAccess = { type: 'owner' }): OpenedSession & { handle: ScriptedHandle } {
    const handle = this.handles.get(sessionId) ?? new ScriptedHandle(sessionId)
    this.handles.set(sessionId, handle)
    return { handle, access, cwd: '/work' }
  }

  async open(sessionId: string): Promise<OpenedSession> {
    this.calls.push(`open ${sessionId}`)
    return this.opened(sessionId)
  }

  async create(): Promise<OpenedSession> {
    this.calls.push('create')
    return this.opened(`new-${this.handles.size}`)
  }

  async fork(sessionId: string, entryId?: string): Promise<OpenedSession> {
    this.calls.push(`fork ${sessionId} ${entryId ?? ''}`.trim())
    return this.opened(`fork-of-${sessionId}`)
  }

  async list({ cwd }: SessionQuery = {}): Promise<SessionInfo[]> {
    return this.sessions.filter((session) => cwd === undefined || session.cwd === undefined || session.cwd === cwd)
  }

  async rename(sessionId: string, name: string): Promise<void> {
    this.calls.push(`rename ${sessionId} ${name}`)
  }

  async archive(sessionId: string): Promise<void> {
    this.calls.push(`archive ${sessionId}`)
  }

  async delete(sessionId: string): Promise<void> {
    this.calls.push(`delete ${sessionId}`)
  }

  async search(): Promise<SearchHit[]> {
    return this.hits
  }

  async models(): Promise<OfferedModel[]> {
    return this.offered
  }

  async tree(): Promise<TreeNode[]> {
    return this.nodes
  }

  async compare(_sessionId: string, { left, right }: { left: string; right: string }): Promise<Comparison> {
    this.calls.push(`compare ${left} ${right}`)
    if (!this.comparison) throw new Error('The test has no comparison.')
    return this.comparison
  }

  async files(query: string): Promise<string[]> {
    return this.paths.filter((path) => path.includes(query))
  }

  async keepImage(_sessionId: string, image: { bytes: Uint8Array; mediaType: string }): Promise<string> {
    this.images.push(image)
    return String(this.images.length).padStart(64, '0')
  }

  readonly jobs: SessionSource['jobs'] = {
    list: async () => [...this.running.keys()].map((command) => this.#job(command)),
    read: async (_sessionId, command) => ({
      job: this.#job(command),
      text: this.running.get(command) ?? '',
      isCut: false,
    }),
    stop: async (_sessionId, command) => void this.calls.push(`stop ${command}`),
  }

  async close(): Promise<void> {
    this.isClosed = true
  }

  #job(command: string): BackgroundJob {
    const isRunning = !this.calls.includes(`stop ${command}`)
    const state = isRunning ? 'running' : 'stopped'
    return { id: command, command, startedAt: new Date(0).toISOString(), state, isRunning }
  }
}
