import { isKeyRelease, matchesKey, type Terminal } from '@earendil-works/pi-tui'
import type { SessionChange, SessionHandle } from '@tapetree/client'
import { harmlessLine } from '../../text/harmless.ts'
import type { ChatEnd, ChatOptions } from '../chat-options.ts'
import { assembleCore, machineCommands, type ChatCore } from '../chat/chat-core.ts'
import { LoadedEntries } from '../chat/current-session.ts'
import { BlockedWrites } from '../chat/blocked-writes.ts'
import { JobList } from '../chat/job-list.ts'
import { Rewinding } from '../chat/rewinding.ts'
import { Sender } from '../chat/sender.ts'
import { SlashCommands } from '../chat/slash-commands.ts'
import { Ticker } from '../chat/activities.ts'
import { againQuits } from '../chat/chat-life.ts'
import { HeardRequests } from './heard-requests.ts'
import { LineInput } from './line-input.ts'
import { answerChoice, choiceLines, NumberedLists, type NumberedChoice } from './numbered-lists.ts'
import type { Transcript, TranscriptItem } from '@tapetree/session/view'
import { plainItem } from '../views/plain-item.ts'
import { elapsedText } from '../../text/amounts.ts'
import { runWords } from '../views/status-line.ts'

const saidAtStart = 10

/** The chat for a screen reader: only adds lines, never redraws, and choices are typed numbers. */
export class PlainChat {
  readonly #options: ChatOptions
  readonly #terminal: Terminal
  readonly #core: ChatCore
  readonly #rewinding: Rewinding
  readonly #input: LineInput
  readonly #sender: Sender
  readonly #requests: HeardRequests
  readonly #progress: HeardProgress
  readonly #ticker = new Ticker(() => this.#input.interrupt(this.#progress.patience()))
  readonly #loaded = new LoadedEntries()
  #heard = new HeardItems()
  #choice: NumberedChoice | undefined
  #isRestored = true

  constructor(options: ChatOptions, terminal: Terminal) {
    const { source, cwd } = options
    const input = new LineInput({ write: (text) => terminal.write(text), onLine: (line) => this.#line(line) })
    const core = assembleCore(options, {
      onChange: (change) => this.#changed(change),
      onRemark: (text) => input.interrupt(text.split('\n')),
      onActivity: () => undefined,
      ui: () => ({
        ask: chooser.ask,
        // What is typed here is read aloud.
        askSecret: async () => undefined,
        suggest: (text) => (input.text = text),
      }),
    })
    const choose = (choice: NumberedChoice): void => this.#choose(choice)
    const say = (lines: readonly string[]): void => input.interrupt(lines)
    const onGo = (entryId: string): Promise<void> => rewinding.goTo(entryId)
    const chooser = new NumberedLists({ ...core, source, cwd, choose, say, onGo })
    const rewinding = new Rewinding({ ...core, ask: chooser.ask, composer: input })
    const blocked = new BlockedWrites({ ...core, ask: chooser.ask })
    const jobs = new JobList({ ...core, source, ask: chooser.ask })
    const machine = machineCommands(options, core, { ask: chooser.ask })
    const send = (text: string): void => this.#sender.send(text)
    const commands = new SlashCommands({
      ...{ ...core, terminal, chooser, rewinding, blocked, jobs, machine, send },
      look: undefined,
    })
    this.#options = options
    this.#terminal = terminal
    this.#core = core
    this.#rewinding = rewinding
    this.#input = input
    this.#sender = new Sender({ ...core, commands, composer: input })
    this.#requests = new HeardRequests(core)
    this.#progress = new HeardProgress(core.now)
  }

  run(): Promise<ChatEnd> {
    return this.#core.life.run({
      start: () => this.#start(),
      begin: () => this.#begin(),
      restore: () => this.restore(),
    })
  }

  restore(): void {
    this.#ticker.stop()
    if (this.#isRestored) return
    this.#isRestored = true
    this.#terminal.write('\r\n')
    this.#terminal.stop()
  }

  /** Hands the terminal to the shell for a while. */
  pause(): void {
    if (this.#isRestored) return
    this.#terminal.write('\r\n')
    this.#terminal.stop()
  }

  /** Takes the terminal back. */
  resume(): void {
    if (this.#isRestored) return
    this.#listen()
    this.#input.prompt()
  }

  #start(): void {
    this.#isRestored = false
    this.#listen()
    const { notices = [] } = this.#options
    this.#input.interrupt([
      'tapetree. Type a message and press Enter. /help lists commands.',
      ...notices.map(({ text }) => text),
    ])
    this.#input.prompt()
  }

  #listen(): void {
    this.#terminal.start(
      (data) => this.#key(data),
      () => undefined,
    )
  }

  #begin(): void {
    const { first, prompt, remarks: listen } = this.#options
    listen?.((text) => this.#core.remarks.warn(text))
    if (first === undefined) this.#sender.send('/sessions')
    if (prompt !== undefined) this.#sender.send(prompt)
  }

  #key(data: string): void {
    // Terminals with the Kitty keyboard protocol report releases too.
    if (isKeyRelease(data)) return undefined
    const { actions, life, remarks } = this.#core
    if (matchesKey(data, 'ctrl+c')) return this.#interrupt()
    if (matchesKey(data, 'ctrl+z')) return this.#options.suspend?.()
    if (matchesKey(data, 'ctrl+d') && this.#input.text === '') return life.quit()
    if (matchesKey(data, 'escape') && actions.isAtWork) return remarks.watch(actions.cancel())
    this.#input.handleInput(data)
  }

  #line(line: string): void {
    const choice = this.#choice
    if (choice) {
      this.#endChoice()
      const problem = answerChoice(choice, line)
      if (problem !== undefined) this.#choose(choice, [problem])
      return
    }
    if (line.trim() !== '') return this.#sender.send(line.trim())
    this.#requests.reset()
    this.#askNext()
  }

  #choose(choice: NumberedChoice, before: readonly string[] = []): void {
    this.#choice = choice
    this.#input.ask('Number> ')
    this.#input.interrupt([...before, ...choiceLines(choice)])
    this.#input.prompt()
  }

  #endChoice(): void {
    this.#choice = undefined
    this.#input.ask('> ')
  }

  #interrupt(): void {
    const choice = this.#choice
    const what = this.#core.interrupts.press({
      hasPanel: choice !== undefined,
      isComposerEmpty: this.#input.text === '',
    })
    this.#input.text = ''
    if (what === 'nothing') return
    this.#endChoice()
    if (what === 'close_panel') choice?.leave()
    this.#core.remarks.say(againQuits)
  }

  #changed(change: SessionChange | { type: 'opened' }): void {
    const { session } = this.#core
    const { handle, obstacle } = session
    if (!handle) return
    if (change.type === 'opened') this.#opened()
    if (change.type === 'status' && obstacle !== '') this.#input.interrupt([`Connection: ${obstacle}.`])
    const lines = this.#heard.news(handle.transcript, session.isBusy)
    const progress = this.#progress.news(handle)
    this.#input.interrupt([...lines, ...progress])
    if (this.#choice?.isOpen?.() === false) {
      this.#endChoice()
      this.#input.interrupt(['That no longer needs an answer.'])
    }
    if (progress.length > 0 && !session.isBusy) this.#input.prompt()
    this.#ticker.run(session.isBusy)
    this.#askNext()
    this.#rewinding.sync()
    this.#loaded.trim(handle)
  }

  #opened(): void {
    const { handle, access } = this.#core.session
    if (!handle) return
    this.#heard = new HeardItems()
    this.#requests.reset()
    const { items } = handle.transcript.path
    this.#heard.skip(items.slice(0, Math.max(0, items.length - saidAtStart)))
    if (access?.type === 'read-only') this.#input.interrupt([`Read-only: ${harmlessLine(access.reason)}`])
    if (items.length > saidAtStart)
      this.#input.interrupt([`${items.length - saidAtStart} earlier items are not read again.`])
  }

  #askNext(): void {
    if (this.#choice) return
    const choice = this.#requests.next()
    if (choice) this.#choose(choice)
  }
}

/** Which items were printed, so that each item and each addition to it is printed once. */
class HeardItems {
  #heard = new Map<string, string[]>()

  /** Marks existing items as printed. */
  skip(items: Iterable<TranscriptItem>): void {
    for (const item of items) this.#heard.set(item.id, plainItem(item))
  }

  /** New lines. An item is printed once it is in the log: partial sentences are not read aloud. */
  news({ path }: Transcript, isBusy: boolean): string[] {
    const lines: string[] = []
    for (const item of path.items.slice(-window)) {
      const now = isBusy ? finished(item) : plainItem(item)
      const before = this.#heard.get(item.id)
      if (before && before.length === now.length && before.every((line, index) => line === now[index])) continue
      const known = new Set(before)
      lines.push(...now.filter((line) => !known.has(line)))
      this.#heard.set(item.id, now)
    }
    this.#forgetOldest()
    return lines
  }

  #forgetOldest(): void {
    for (const id of this.#heard.keys()) {
      if (this.#heard.size <= mostHeard) return
      this.#heard.delete(id)
    }
  }
}

/** Only the newest item can change. */
const window = 50
/** After going back further, the last items are printed once more. */
const mostHeard = 3000

/** Active calls are printed when they are done. */
function finished(item: TranscriptItem): string[] {
  if (item.type !== 'assistant') return plainItem(item)
  const parts = item.parts.filter((part) => part.type !== 'tool_call' || part.result !== undefined)
  return plainItem({ ...item, parts })
}

const patienceMs = 15_000

/** The activity of a run in few words: started, waiting, still working, done. */
class HeardProgress {
  readonly #now: () => number
  #startedAt: number | undefined
  #saidAt = 0
  #waiting: string | undefined

  constructor(now: () => number) {
    this.#now = now
  }

  news(handle: SessionHandle): string[] {
    const now = this.#now()
    const run = handle.state('run')
    const isBusy = run?.isBusy ?? handle.transcript.run !== null
    const waiting = run?.waitingFor?.type === 'resume' ? undefined : run?.waitingFor?.type
    const lines: string[] = []
    if (isBusy && this.#startedAt === undefined) lines.push('Working.')
    if (waiting !== undefined && waiting !== this.#waiting) {
      lines.push(harmlessLine(runWords({ transcript: handle.transcript, run, now }) ?? waiting))
    }
    if (!isBusy && this.#startedAt !== undefined) lines.push('Ready.')
    this.#waiting = waiting
    this.#startedAt = isBusy ? (this.#startedAt ?? now) : undefined
    if (lines.length > 0) this.#saidAt = now
    return lines
  }

  /** Called periodically: says that the run is still working, not too often. */
  patience(): string[] {
    const now = this.#now()
    if (this.#startedAt === undefined || now - this.#saidAt < patienceMs) return []
    this.#saidAt = now
    return [`Still working, ${elapsedText(now - this.#startedAt)}.`]
  }
}
