import type { Invocation } from '../../command-line/command.ts'
import { localSource, offeredModels } from '../../host/local-source.ts'
import { openStore } from '../../host/open-store.ts'
import { traceUrlOf } from '../../host/otlp.ts'
import { surroundingsOf } from '../../host/surroundings.ts'
import type { Io } from '../../command-line/io.ts'
import { placesOf } from '../../host/places.ts'
import type { OfferedModel, OpenedSession, SessionSource } from '../../session-source.ts'
import { choiceOf, flagsOf, openChatHost, closeChat, openWanted, sayGoodbye, sessionWanted } from './session.ts'
import type { ChatServices } from '../../tui/chat-services.ts'
import type { ChatProblems } from './problems.ts'

export interface ChatBehindScreen {
  source: SessionSource
  /** If undefined, the user chooses from a list. */
  opened: OpenedSession | undefined
  services: () => Promise<ChatServices>
  listen: () => Promise<void>
  /** Closes everything and prints how to continue. */
  leave: (last: string | undefined) => Promise<void>
}

/** The runtime behind a chat whose screen is already drawn: asks no questions. */
export async function openBehindScreen(
  invocation: Invocation,
  { io, problems }: { io: Io; problems: Pick<ChatProblems, 'add'> },
): Promise<ChatBehindScreen> {
  const { cwd } = io
  const flags = flagsOf(invocation)
  const store = await openStore(placesOf(io))
  const host = await openChatHost({ io, store, flags, traceUrl: traceUrlOf(invocation), problems })
  const models = async (): Promise<OfferedModel[]> => offeredModels((await surroundingsOf(io, { cwd, flags })).registry)
  const source = localSource({ host, store, cwd, models })
  try {
    const wanted = await sessionWanted(invocation, { store, cwd })
    const opened = await openWanted(wanted, source)
    if (opened && opened.access.type !== 'read-only' && wanted.type !== 'new') await opened.handle.set(choiceOf(flags))
    return {
      source,
      opened,
      services: async () => (await import('./services.ts')).chatServices({ io, store, host, source }),
      listen: () => host.listen(),
      leave: async (last) => {
        const discarded = await closeChat(source, { host, store })
        await sayGoodbye(last, { discarded, folder: source.folder }, io)
        await store.close()
      },
    }
  } catch (error) {
    await closeChat(source, { host, store })
    await store.close()
    throw error
  }
}
