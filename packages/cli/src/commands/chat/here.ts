import type { ModelReference } from '@tapetree/session'
import { textOption, type Invocation } from '../../command-line/command.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { askTrust } from '../../host/ask-trust.ts'
import { localSource } from '../../host/local-source.ts'
import { offeredModels } from '../../host/offered-models.ts'
import { openStore } from '../../host/open-store.ts'
import { surroundingsOf, type Surroundings } from '../../host/surroundings.ts'
import type { Io } from '../../command-line/io.ts'
import { placesOf } from '../../host/places.ts'
import type { ChatEnd, ChatOptions } from '../../tui/chat-options.ts'
import { rememberStart } from './start-mark.ts'
import { choiceOf, flagsOf } from './chat-flags.ts'
import { openChatHost } from './host.ts'
import { noticesOf } from './chat-notices.ts'
import { ChatProblems } from './problems.ts'
import { lookOf, showChat } from './screen.ts'
import { closeChat, openWanted, sayGoodbye, sessionWanted, type WantedSession } from './session.ts'
import { offerWaysIn } from './without-model.ts'

/** The chat in this folder, or in that of the session it goes on with. Whoever has to be asked something is asked first. */
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
  /** Empty: nothing is said yet. */
  prompt: string
}

/** Also for `attach`, which names a session and nothing else. */
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
