import type { ChatServices, ContextOverview, PermissionOverview, ReviewedServer } from '../chat-services.ts'

/** Services defined by a test. Records what changes something in `calls`. */
export class ScriptedServices implements ChatServices {
  readonly calls: string[] = []
  overview: PermissionOverview = { rules: [], proposals: [] }
  reviewed: ReviewedServer[] = []
  contextNow: ContextOverview = { tokens: 0, parts: [] }

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
}
