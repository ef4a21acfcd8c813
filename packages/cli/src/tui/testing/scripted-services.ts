import type { ChatServices, ContextOverview, PermissionOverview, ReviewedServer } from '../chat-services.ts'

/** Services defined by a test. Records what changes something in `calls`. */
export class ScriptedServices implements ChatServices {
  readonly calls: string[] = []
  overview: PermissionOverview = { rules: [], proposals: [] }
  reviewed: ReviewedServer[] = []
  contextNow: ContextOverview = { tokens: 0, parts: [] }
  /** Commands in the background, with their output. */
  running = new Map<string, string>()

  async permissions(): Promise<PermissionOverview> {
    return this.overview
  }

  async acceptProposal({ id }: { id: string }): Promise<void> {
    this.calls.push(`accept ${id}`)
    this.overview = { ...this.overview, proposals: this.overview.proposals.filter((each) => each.id !== id) }
  }

  async servers(): ReturnType<ChatServices['servers']> {
    return {
      servers: this.reviewed,
      accept: async ({ name, sha256 }) => {
        this.calls.push(`accept server ${name} ${sha256}`)
        return true
      },
      [Symbol.asyncDispose]: async () => void this.calls.push('close servers'),
    }
  }

  async jobs(): ReturnType<ChatServices['jobs']> {
    return [...this.running.keys()].map((command) => this.#job(command))
  }

  async jobOutput(_sessionId: string, command: string): ReturnType<ChatServices['jobOutput']> {
    return { job: this.#job(command), text: this.running.get(command) ?? '', isCut: false }
  }

  async stopJob(_sessionId: string, command: string): Promise<void> {
    this.calls.push(`stop ${command}`)
  }

  async context(): Promise<ContextOverview> {
    return this.contextNow
  }

  async usage(): ReturnType<ChatServices['usage']> {
    return [{ model: 'maker/small', calls: 12, tokens: 34_000, cost: 0.56 }]
  }

  async share(sessionId: string, format: string): ReturnType<ChatServices['share']> {
    return { path: `/there/session-${sessionId}.${format}`, bytes: 2048, redacted: 1 }
  }

  async providers(): ReturnType<ChatServices['providers']> {
    return [
      { id: 'maker', name: 'Maker', hasKey: true },
      { id: 'other', name: 'Other', hasKey: false },
    ]
  }

  async checkKey(_provider: string, key: string): ReturnType<ChatServices['checkKey']> {
    if (key === 'right-key') return undefined
    return { message: 'The provider does not accept the key.', isRefused: key !== 'offline-key' }
  }

  async storeKey(provider: string, key: string): Promise<string> {
    this.calls.push(`store ${provider} ${key}`)
    return 'It is stored.'
  }

  async remember(choices: object, where: string): Promise<void> {
    this.calls.push(`remember ${where} ${JSON.stringify(choices)}`)
  }

  async remembered(): ReturnType<ChatServices['remembered']> {
    return [
      { name: 'model', value: 'maker/small', from: '/config/settings.json:3, for this project', isOfProject: true },
      { name: 'theme', value: 'dark', from: 'default', isOfProject: false },
    ]
  }

  async release(sessionId: string): Promise<void> {
    this.calls.push(`release ${sessionId}`)
  }

  #job(command: string): Awaited<ReturnType<ChatServices['jobs']>>[number] {
    const isRunning = !this.calls.includes(`stop ${command}`)
    return {
      id: command,
      command,
      startedAt: new Date(0).toISOString(),
      state: isRunning ? 'running' : 'stopped',
      isRunning,
    }
  }
}
