import type { ModelReference } from '@tapetree/session'
import { textOption, type Invocation } from '../../command-line/command.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { localSource, offeredModels } from '../../host/local-source.ts'
import { openStore } from '../../host/open-store.ts'
import { surroundingsOf, type Surroundings } from '../../host/surroundings.ts'
import { write, askLine, type Io } from '../../command-line/io.ts'
import { placesOf } from '../../host/places.ts'
import type { ChatEnd, ChatOptions, Notice } from '../../tui/chat-options.ts'
import { rememberStart } from './start-mark.ts'
import { choiceOf, flagsOf, openChatHost } from './host.ts'
import { ChatProblems } from './problems.ts'
import { lookOf, showChat } from './screen.ts'
import { closeChat, openWanted, sayGoodbye, sessionWanted, type WantedSession } from './session.ts'
import { offerWaysIn } from './without-model.ts'
import {
  configFolder,
  findProjectRoot,
  inspectProject,
  settleTrust,
  TrustStore,
  type LoadedSettings,
  type ProjectTrust,
} from '@tapetree/agent'
import { harmlessLine, harmless } from '../../text/harmless.ts'
import type { OpenedSession } from '../../session-source.ts'
import { stylesFor } from '../../command-line/color.ts'

/** The chat in this folder, or in the folder of the session it continues. Asks its questions before it draws the screen. */
export async function chatHere(invocation: Invocation, io: Io): Promise<ExitCode> {
  const store = await openStore(placesOf(io))
  try {
    const wanted = await sessionWanted(invocation, { store, cwd: io.cwd })
    return await chatWith(wanted, { store, invocation, io, prompt: invocation.positionals.join(' ') })
  } finally {
    await store.close()
  }
}

interface ChatParts {
  store: Awaited<ReturnType<typeof openStore>>
  invocation: Invocation
  io: Io
  /** If empty, no prompt is sent. */
  prompt: string
}

/** Also for `attach`, which only names a session. */
export async function chatWith(wanted: WantedSession, { store, invocation, io, prompt }: ChatParts): Promise<ExitCode> {
  const cwd = ('session' in wanted ? wanted.session.cwd : undefined) ?? io.cwd
  const trust = await askTrust(cwd, io)
  const flags = flagsOf(invocation)
  const around = await surroundingsOf(io, { cwd, trust, flags })
  let typed = textOption(invocation, 'model')
  if (wanted.type === 'new' && typed === undefined) {
    const way = await offerWaysIn(around, invocation, io)
    if (way.type === 'leave') return way.code
    typed = way.model
  }
  const model = typed === undefined ? undefined : await findModel(around, typed)
  const problems = new ChatProblems()
  const host = await openChatHost({ io, store, flags, problems })
  const source = localSource({ host, store, cwd, model, models: () => offeredModels(around.registry) })
  let end: ChatEnd | undefined
  try {
    const first = await openWanted(wanted, source)
    if (first && first.access.type !== 'read-only' && wanted.type !== 'new') {
      await first.handle.set({ ...choiceOf(flags), ...(model && { model }) })
    }
    const { settings } = around
    const soFar = problems.take()
    const isAsWritten = model === undefined && soFar.length === 0
    if (wanted.type === 'new' && isAsWritten) await rememberStart(io, { settings, trust })
    const look = lookOf(invocation, settings.values.terminal, io)
    const notices = noticesOf({ first, settings, trust, problems: soFar })
    const remarks: ChatOptions['remarks'] = (tell) => problems.listen(tell)
    end = await showChat({ io, cwd, source, first, look, notices, remarks, prompt, host })
  } finally {
    const discarded = await closeChat(source, { host, store })
    await sayGoodbye(end?.sessionId, discarded, io)
  }
  return exitCodes.ok
}

async function findModel({ registry }: Surroundings, typed: string): Promise<ModelReference> {
  const { provider, id } = await registry.find(typed)
  return { provider, modelId: id }
}

interface Noticed {
  first: OpenedSession | undefined
  settings: LoadedSettings
  trust?: ProjectTrust
  /** Problems so far, a sentence each. */
  problems?: readonly string[]
}

/** Notices above the conversation, each once. The owner of the session may change while the chat runs. */
export function noticesOf({ first, settings, trust, problems = [] }: Noticed): Notice[] {
  const lasting = [...settings.problems.map(({ message }) => message), ...problems]
  if (trust?.state === 'untrusted' || trust?.state === 'changed') {
    lasting.push(`Ignoring the project settings of ${trust.project.root}, because the folder is not trusted.`)
  }
  const notices: Notice[] = [...new Set(lasting.map(harmlessLine))].map((text) => ({ text }))
  const owner = first && ownerNotice(first)
  const { access } = first ?? {}
  if (owner !== undefined) notices.push({ text: harmlessLine(owner), while: () => first?.access === access })
  return notices
}

function ownerNotice({ access, handle }: OpenedSession): string | undefined {
  if (access.type === 'attached') return `The session runs in ${access.where}; this is one of its screens.`
  if (access.type !== 'read-only') return undefined
  const isOwned = handle.state('read_only')?.owner !== undefined
  return isOwned ? `${access.reason} You can watch it here. You can write when that process closes it.` : access.reason
}

/** Asks whether to trust a repository with settings that take effect, before any of them apply. No answer means no. */
export async function askTrust(cwd: string, io: Io): Promise<ProjectTrust> {
  const project = await inspectProject(await findProjectRoot(cwd), cwd)
  return settleTrust(project, new TrustStore(configFolder(io)), async (trust) => {
    await write(io.stderr, `${summaryOf(trust, io)}\n`)
    const answer = await askLine(io, 'Trust it? [y/N] ')
    return /^(?:y|yes)$/i.test(answer)
  })
}

/** When a trusted repository changes, shows the changes and everything it would do now; new text is shown in full. */
function summaryOf(trust: ProjectTrust, { stderr, env }: Pick<Io, 'stderr' | 'env'>): string {
  const { bold, yellow } = stylesFor(stderr, env)
  const { project } = trust
  const root = harmlessLine(project.root)
  const all = project.summary.map((line) => `  ${harmless(line)}`)
  if (trust.state !== 'changed') {
    return [`${bold(root)} has project settings that you have not trusted yet:`, ...all].join('\n')
  }
  const changes = trust.changes.map(({ change, what, name }) => `  ${yellow(change)} ${what} ${harmlessLine(name)}`)
  return [
    `${bold(root)} has changed since you trusted it:`,
    ...changes,
    ...(all.length > 0 ? ['Everything it would do now:', ...all] : []),
  ].join('\n')
}
