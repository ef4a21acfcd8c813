import type { EntryDraft } from '@tapetree/session/format'
import { FakeClock } from '../../testing/fake-clock.ts'
import { TestFolder } from '../../testing/test-folder.ts'
import type { Answer, Question } from '../../tools/tool.ts'
import type { ExtensionProblem } from '../loaded-extension.ts'
import { ExtensionHost, type ExtensionHostOptions } from '../extension-host.ts'
import type { Hooks, HookSession } from '../../run/hooks.ts'

/** A host with extensions in files, and its reports. */
export interface OpenedHost extends AsyncDisposable {
  host: ExtensionHost
  /** Of the session `session-1`. */
  hooks: Hooks
  session: TestHookSession
  clock: FakeClock
  folder: TestFolder
  problems: ExtensionProblem[]
  /** As in `shout (toolCall): It took longer than 5 s.` */
  told: () => string[]
  output: string[]
}

export interface OpenHostOptions extends Partial<ExtensionHostOptions> {
  /** Name and source; each is written to a file and runs on its own thread. */
  files?: Record<string, string>
}

export async function openHost({ files = {}, ...options }: OpenHostOptions): Promise<OpenedHost> {
  const folder = await TestFolder.make(files)
  const clock = new FakeClock()
  const problems: ExtensionProblem[] = []
  const output: string[] = []
  const host = await ExtensionHost.open({
    cwd: folder.path,
    onProblem: (problem) => problems.push(problem),
    onOutput: ({ extension, text }) => output.push(`${extension}: ${text}`),
    clock,
    ...options,
    extensions: [...Object.keys(files).map((name) => folder.at(name)), ...(options.extensions ?? [])],
  })
  const session = new TestHookSession(folder.path)
  const told = (): string[] =>
    problems.map(({ extension, hook, message }) => `${extension}${hook === undefined ? '' : ` (${hook})`}: ${message}`)
  return {
    host,
    hooks: host.hooks.forSession?.(session) ?? host.hooks,
    session,
    clock,
    folder,
    problems,
    told,
    output,
    async [Symbol.asyncDispose]() {
      await host.close()
      await folder[Symbol.asyncDispose]()
    },
  }
}

class TestHookSession implements HookSession {
  readonly id = 'session-1'
  readonly cwd: string
  readonly drafts: EntryDraft[] = []
  readonly asked: { asker: string; question: Question; answer: (answer: Answer) => void }[] = []
  name = ''
  readonly sent: { text: string; delivery: string; sender: string }[] = []
  readonly #labels = new Map<string, string>()
  #onAsk: (() => void)[] = []

  constructor(cwd: string) {
    this.cwd = cwd
  }

  get leafId(): string | null {
    return this.drafts.length === 0 ? null : `entry-${this.drafts.length}`
  }

  async append(draft: EntryDraft): Promise<void> {
    this.drafts.push(draft)
  }

  async setLabel(entryId: string, label: string): Promise<void> {
    if (!/^entry-\d+$/.test(entryId)) throw new Error(`There is no entry ${entryId}.`)
    this.#labels.set(entryId, label)
  }

  labels(): ReadonlyMap<string, string> {
    return this.#labels
  }

  async setName(name: string): Promise<void> {
    this.name = name
  }

  async send(message: { text: string; delivery: string; sender: string }): Promise<void> {
    this.sent.push(message)
  }

  async ask(asker: string, question: Question, signal: AbortSignal): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.asked.push({ asker, question, answer: resolve })
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
      for (const tell of this.#onAsk.splice(0)) tell()
    })
  }

  /** Resolves with the next pending question. */
  async nextQuestion(): Promise<(typeof this.asked)[number]> {
    while (this.asked.length === 0) await new Promise<void>((resolve) => this.#onAsk.push(resolve))
    return this.asked.shift() as (typeof this.asked)[number]
  }
}
