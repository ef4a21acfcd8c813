import { ageOf, costText, counted, tokenText } from '../../text/amounts.ts'
import { harmless, harmlessLine } from '../../text/harmless.ts'
import {
  shareFormats,
  type ChatServices,
  type ContextCompaction,
  type ContextOverview,
  type ListedRule,
  type ProposedRule,
  type RememberedName,
  type RememberedSetting,
  type ReviewedServer,
} from '../chat-services.ts'
import type { Activities } from './activities.ts'
import type { CurrentSession } from './current-session.ts'
import { enterKey, type AskSecret } from './enter-key.ts'
import type { Remarks } from './remarks.ts'
import type { Ask, Question } from './rewinding.ts'
import type { SessionActions } from './session-actions.ts'
import type { Writes } from './writes.ts'

export interface MachineCommandsOptions {
  services: ChatServices
  session: CurrentSession
  actions: SessionActions
  remarks: Remarks
  activities: Activities
  writes: Writes
  ask: Ask
  /** Asks for a text that is not shown. Absent if the screen cannot hide it. */
  askSecret: AskSecret | undefined
  now: () => number
}

const usageDays = 7
/** More does not fit on a screen together with the choices. */
const shownLines = 30

/** Commands about the machine that the session is on: rules, servers, context, keys and files. */
export class MachineCommands {
  readonly #options: MachineCommandsOptions

  constructor(options: MachineCommandsOptions) {
    this.#options = options
  }

  /** Rules with their sources. A proposal from past approvals can be accepted. */
  async permissions(sessionId: string): Promise<void> {
    const { services, ask, remarks, now, writes } = this.#options
    for (;;) {
      const { rules, proposals } = await this.#wait('Reading rules', services.permissions(sessionId))
      const proposal = await ask(rulesQuestion(rules, proposals, now()))
      if (!proposal || proposal === 'close') return
      await this.#wait(
        'Changing the settings',
        writes.add(() => services.acceptProposal(proposal)),
      )
      const isReopened = await this.#reopen(sessionId)
      const from = isReopened ? 'from now on' : 'when the session is opened the next time'
      remarks.say(`Allowed in this project, ${from}: ${harmlessLine(proposal.text)}`)
    }
  }

  /** MCP servers with their state. A changed one can be accepted as shown. */
  async mcp(): Promise<void> {
    const { services, ask, remarks } = this.#options
    await using review = await this.#wait('Connecting to MCP servers', services.servers())
    if (review.servers.length === 0) return remarks.say('The settings of this folder have no MCP servers.')
    const server = await ask(serversQuestion(review.servers))
    if (!server) return
    const answer = await ask(serverQuestion(server))
    if (answer !== 'accept') return
    const isAccepted = await this.#wait('Accepting', review.accept(server))
    const name = harmlessLine(server.name)
    if (isAccepted) remarks.say(`Accepted ${name} as it is now. Its tools come back in a moment.`)
    else remarks.warn(`${name} has more to accept, or has changed again. /mcp shows it.`)
  }

  /** What the context consists of, and what the newest summary replaced, which can be undone. */
  async context(sessionId: string): Promise<void> {
    const { services, session, actions, ask, remarks } = this.#options
    const overview = await this.#wait('Reading the context', services.context(sessionId))
    const [window, folder] = await Promise.all([this.#window(), actions.folderOf(sessionId)])
    const answer = await ask(contextQuestion(overview, { window, sessionId, folder }))
    const { compaction } = overview
    if (answer === 'compact') return actions.compact('')
    if (answer === 'dropped' && compaction) await ask(droppedQuestion(compaction))
    if (answer !== 'undo' || !compaction) return
    const { handle } = session
    if (!handle) return
    const isDone = await actions.attempt('Undoing the compaction', () => handle.navigate(compaction.beforeId))
    if (isDone) remarks.say('The summary is undone: the messages before it are in the context again.')
  }

  async usage(): Promise<void> {
    const { services, session, ask } = this.#options
    const rows = await this.#wait('Reading sessions', services.usage(usageDays))
    const here = session.handle?.state('usage')
    const total = rows.reduce((sum, { cost }) => sum + cost, 0)
    const named = rows.map(({ model, calls, tokens, cost }) =>
      row(model, `${counted(calls, 'call')}, ${tokenText(tokens)} tokens, ${costText(cost)}`),
    )
    await ask({
      title: 'Usage',
      intro: [
        ...(here
          ? [
              `This session: ${counted(here.turns, 'turn')}, ${counted(here.toolCalls, 'tool call')}, ` +
                `${tokenText(here.tokens)} tokens, ${costText(here.cost)}`,
              '',
            ]
          : []),
        `All sessions in the last ${usageDays} days: ${costText(total)}`,
        ...(named.length > 0 ? named : ['  No model has been used.']),
        '',
      ],
      choices: [close],
    })
  }

  /** Writes the session to a file. `format` may be empty. */
  async share(sessionId: string, format: string): Promise<void> {
    const { services, ask, remarks } = this.#options
    const known = shareFormats.find((each) => each === format)
    if (format !== '' && !known) {
      return remarks.warn(`There is no format ${harmlessLine(format)}. Known: ${shareFormats.join(', ')}.`)
    }
    const chosen = known ?? (await ask(shareQuestion))
    if (!chosen) return
    const { path, bytes, redacted } = await this.#wait('Writing the session', services.share(sessionId, chosen))
    const secrets = redacted === 0 ? 'No secrets were found in it.' : `Removed ${counted(redacted, 'secret')}.`
    remarks.say(`Wrote ${harmlessLine(path)} (${counted(bytes, 'byte')}). ${secrets}`)
  }

  /** Asks for a key, checks it with the provider and stores it. `provider` may be empty. */
  async login(provider: string): Promise<void> {
    const { services, ask, askSecret, remarks, writes } = this.#options
    const providers = await this.#wait('Reading providers', services.providers())
    const named = providers.find(({ id }) => id === provider)
    if (provider !== '' && !named) {
      const known = providers.map(({ id }) => id).join(', ')
      return remarks.warn(`There is no provider ${harmlessLine(provider)} that needs a key. Known: ${known}.`)
    }
    const chosen =
      named ??
      (await ask({
        title: 'Provider',
        intro: [],
        choices: providers.map((each) => ({
          value: each,
          label: each.name,
          ...(each.hasKey && { detail: 'has a key' }),
        })),
      }))
    if (!chosen) return
    if (!askSecret) return remarks.say(`In a shell, run: tapetree login ${chosen.id}`)
    const say = (text: string): void => remarks.say(`${text} /model chooses a model.`)
    const keys = {
      checkKey: (id: string, key: string) => services.checkKey(id, key),
      storeKey: (id: string, key: string) => writes.add(() => services.storeKey(id, key)),
    }
    const entered = await enterKey({ ask, askSecret, say, services: keys, providers: [chosen] })
    if (!entered) remarks.say('No key was stored.')
  }

  /** What new sessions start with, and where it comes from. A choice can be used everywhere, or forgotten here. */
  async config(): Promise<void> {
    const { services, ask, remarks, writes } = this.#options
    for (;;) {
      const setting = await ask(settingsQuestion(await this.#wait('Reading settings', services.remembered())))
      if (!setting || setting === 'close') return
      const answer = await ask(settingQuestion(setting))
      const { name, value } = setting
      if (answer === 'everywhere') {
        await writes.add(async () => {
          await services.remember({ [name]: value }, 'everywhere')
          await services.remember({ [name]: null }, 'project')
        })
        remarks.say(`New sessions use ${settingTitles[name]} ${harmlessLine(value ?? '')} everywhere.`)
      }
      if (answer === 'forget') {
        await writes.add(() => services.remember({ [name]: null }, 'project'))
        remarks.say(`Forgot the ${settingTitles[name]} of this project.`)
      }
    }
  }

  /** Settings are read when a session is opened. False if other screens or a run use the session. */
  async #reopen(sessionId: string): Promise<boolean> {
    const { services, session, actions } = this.#options
    const others = session.handle?.state('presence') ?? []
    if (session.access?.type !== 'owner' || session.isBusy || others.length > 1) return false
    await services.release(sessionId)
    await actions.open(sessionId)
    return true
  }

  /** The tokens that the model takes; undefined if they are not known. */
  async #window(): Promise<number | undefined> {
    const model = this.#options.session.handle?.state('config')?.model
    const models = await this.#wait('Loading models', this.#options.actions.models())
    return models.find(({ provider, modelId }) => provider === model?.provider && modelId === model.modelId)
      ?.contextTokens
  }

  #wait<T>(label: string, work: Promise<T>): Promise<T> {
    return this.#options.activities.track(label, work)
  }
}

const close = { value: 'close' as const, label: 'Close' }

function row(name: string, value: string): string {
  return `  ${harmlessLine(name)}  ${harmlessLine(value)}`
}

function rulesQuestion(
  rules: readonly ListedRule[],
  proposals: readonly ProposedRule[],
  now: number,
): Question<ProposedRule | 'close'> {
  return {
    title: 'Permissions',
    intro: [
      ...(rules.length === 0 ? ['There are no rules: the permission mode decides.'] : ['Rules:']),
      ...rules.map(({ effect, text, from }) => row(`${effect} ${text}`, `(${from})`)),
      '',
      proposals.length === 0
        ? 'Nothing to propose: what you allow several times in this project is offered here as a rule.'
        : 'You have allowed these several times. Choose one to allow it in this project without a question:',
    ],
    choices: [
      ...proposals.map((proposal) => ({
        value: proposal,
        label: harmlessLine(proposal.text),
        detail: approvalsText(proposal, now),
      })),
      close,
    ],
  }
}

function approvalsText({ approvals, sessions, lastApproved }: ProposedRule, now: number): string {
  const age = ageOf(lastApproved, now)
  const times = `allowed ${counted(approvals, 'time')} in ${counted(sessions, 'session')}`
  return `${times}, last ${age === 'now' ? 'just now' : `${age} ago`}`
}

const stateTexts: Record<ReviewedServer['state'], string> = {
  ready: 'ready',
  changed: 'changed: accept it to use its tools',
  failed: 'failed',
  signing_in: 'needs you to sign in',
  starting: 'starting',
  closed: 'closed',
}

function serversQuestion(servers: readonly ReviewedServer[]): Question<ReviewedServer> {
  return {
    title: 'MCP servers',
    intro: [],
    choices: servers.map((server) => ({
      value: server,
      label: harmlessLine(server.name),
      detail: [stateTexts[server.state], server.state === 'ready' ? counted(server.tools.length, 'tool') : server.says]
        .filter(Boolean)
        .join(', '),
    })),
  }
}

/** Everything that the model would receive and the user has not seen is shown in full. */
function serverQuestion({ name, state, says, tools }: ReviewedServer): Question<'accept' | 'close'> {
  const shown = state === 'changed' ? tools.filter(({ isNew }) => isNew) : tools
  return {
    title: `MCP server ${harmlessLine(name)}: ${stateTexts[state]}`,
    intro: [
      ...(says === '' ? [] : [harmless(says)]),
      ...shown.flatMap((tool) => [
        `  ${harmlessLine(tool.name)}`,
        ...(state === 'changed' ? harmless(tool.description).split('\n') : []).map((line) => `    ${line}`),
      ]),
      '',
    ],
    choices: [
      close,
      ...(state === 'changed'
        ? [{ value: 'accept' as const, label: 'Accept', detail: 'the model gets these descriptions' }]
        : []),
    ],
  }
}

const settingTitles: Record<RememberedName, string> = {
  model: 'model',
  thinkingLevel: 'thinking level',
  mode: 'permission mode',
  theme: 'theme',
}

function settingsQuestion(settings: readonly RememberedSetting[]): Question<RememberedSetting | 'close'> {
  return {
    title: 'Settings of new sessions',
    intro: ['What you choose with /model, /thinking, /mode and /theme is remembered for this project.', ''],
    choices: [
      ...settings.map((setting) => ({
        value: setting,
        label: `${settingTitles[setting.name]}: ${harmlessLine(setting.value ?? 'not chosen')}`,
        detail: `from ${harmlessLine(setting.from)}`,
      })),
      close,
    ],
  }
}

function settingQuestion({
  name,
  value,
  from,
  isOfProject,
}: RememberedSetting): Question<'everywhere' | 'forget' | 'close'> {
  return {
    title: `${settingTitles[name]}: ${harmlessLine(value ?? 'not chosen')}`,
    intro: [`It comes from ${harmlessLine(from)}.`, ''],
    choices: [
      close,
      ...(value === undefined
        ? []
        : [{ value: 'everywhere' as const, label: 'Use it everywhere', detail: 'where nothing else is chosen' }]),
      ...(isOfProject
        ? [
            {
              value: 'forget' as const,
              label: 'Forget it in this project',
              detail: 'the general setting applies again',
            },
          ]
        : []),
    ],
  }
}

const barWidth = 20

function contextQuestion(
  { tokens, parts, compaction }: ContextOverview,
  { window, sessionId, folder }: { window: number | undefined; sessionId: string; folder: string | undefined },
): Question<'undo' | 'dropped' | 'compact' | 'close'> {
  const share = window === undefined ? '' : ` of ${tokenText(window)}, ${Math.round((100 * tokens) / window)}%`
  const nameWidth = Math.max(0, ...parts.map(({ name }) => name.length))
  return {
    title: 'Context',
    intro: [
      `${tokenText(tokens)} tokens${share}`,
      ...parts.map(({ name, tokens: part }) => {
        const bar = '█'.repeat(Math.max(1, Math.round((barWidth * part) / Math.max(1, tokens))))
        return `  ${name.padEnd(nameWidth)}  ${bar.padEnd(barWidth)}  ${tokenText(part)}`
      }),
      ...(compaction
        ? [
            '',
            `A summary replaces ${counted(compaction.dropped.length, 'message')} ` +
              `(${tokenText(compaction.tokensBefore)} tokens before).`,
          ]
        : []),
      '',
      `Session ${harmlessLine(sessionId)}`,
      ...(folder === undefined ? [] : [`Log in  ${harmlessLine(folder)}`]),
      '',
    ],
    choices: [
      close,
      { value: 'compact' as const, label: 'Compact now', detail: 'summarize the older messages' },
      ...(compaction
        ? [
            { value: 'dropped' as const, label: 'Show what the summary replaced' },
            { value: 'undo' as const, label: 'Undo the compaction', detail: undoText(compaction) },
          ]
        : []),
    ],
  }
}

function undoText({ messagesAfter }: ContextCompaction): string {
  if (messagesAfter === 0) return 'the messages before it count again'
  return `goes back to before it; ${counted(messagesAfter, 'later message')} stay on a branch (/tree)`
}

function droppedQuestion({ dropped }: ContextCompaction): Question<'close'> {
  const shown = dropped.slice(-shownLines).map(harmlessLine)
  const more = dropped.length - shown.length
  return {
    title: 'Replaced by the summary',
    intro: [...(more > 0 ? [`… ${counted(more, 'earlier message')}`] : []), ...shown, ''],
    choices: [close],
  }
}

const shareQuestion: Question<(typeof shareFormats)[number]> = {
  title: 'Share this session',
  intro: ['It is written to a file in the working folder. Secrets are removed.', ''],
  choices: [
    { value: 'html', label: 'HTML', detail: 'one page with the whole tree, for a browser' },
    { value: 'markdown', label: 'Markdown', detail: 'the conversation as text' },
    { value: 'bundle', label: 'Bundle', detail: 'for `tapetree sessions import`' },
  ],
}
