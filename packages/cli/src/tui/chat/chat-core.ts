import type { SessionChange } from '@tapetree/client'
import type { RememberedChoices } from '../chat-services.ts'
import type { ChatOptions, SetupUi } from '../chat-options.ts'
import { History } from '../input/history.ts'
import { Images, type ImagesOptions } from '../input/images.ts'
import { Activities } from './activities.ts'
import { ChatLife, Interrupts, type EnterKey } from './chat-life.ts'
import { CurrentSession } from './current-session.ts'
import type { AskSecret } from './enter-key.ts'
import type { MachineCommands } from './machine-commands.ts'
import { Remarks } from './remarks.ts'
import type { Ask } from './rewinding.ts'
import { SessionActions } from './session-actions.ts'
import { Writes } from './writes.ts'
import type { SessionSource } from '../../session-source.ts'

/** What every chat has, on a screen or as plain lines. */
export interface ChatCore {
  now: () => number
  session: CurrentSession
  remarks: Remarks
  activities: Activities
  life: ChatLife
  actions: SessionActions
  writes: Writes
  interrupts: Interrupts
  history: History
  images: Images
  enterKey: EnterKey
}

export interface ChatCoreListeners {
  onChange: (change: SessionChange | { type: 'opened' }) => void
  onRemark: (text: string) => void
  /** A remark is no longer true. */
  onRemarkGone?: () => void
  onActivity: () => void
  /** For questions before the first session. */
  ui: () => Omit<SetupUi, 'say'>
}

export function assembleCore(
  options: ChatOptions,
  { onChange, onRemark, onRemarkGone, onActivity, ui }: ChatCoreListeners,
): ChatCore {
  const { source, first, signal, cwd, home, now = Date.now } = options
  const session = new CurrentSession(onChange)
  const remarks = new Remarks(onRemark, onRemarkGone)
  const activities = new Activities({ now, onChange: onActivity })
  const setupUi = (): SetupUi => ({ ...ui(), say: (text) => remarks.say(text) })
  const writes = new Writes()
  const life = new ChatLife({ source, first, ui: setupUi, session, activities, writes, ...(signal && { signal }) })
  const { services } = options
  const remember = services && (async (choices: RememberedChoices) => (await services()).remember(choices, 'project'))
  const actions = new SessionActions({ source, session, remarks, activities, writes, remember })
  const interrupts = new Interrupts({ now, actions, remarks, life })
  const keep = imageKeeper({ session, source, activities, whenOpen: life.whenOpen })
  const history = new History(options.historyFile)
  const images = new Images({ cwd: () => session.localFolder ?? cwd, home, env: options.env, keep })
  const core = { now, session, remarks, activities, life, actions, writes, interrupts, history, images }
  return { ...core, enterKey: { steers: false } }
}

interface Asking {
  ask: Ask
  askSecret?: AskSecret
}

/** Commands about the machine of the session. Absent if it is another one. */
export function machineCommands(
  { services }: ChatOptions,
  core: ChatCore,
  { ask, askSecret }: Asking,
): (() => Promise<MachineCommands>) | undefined {
  if (!services) return undefined
  return async () => {
    const { MachineCommands: Commands } = await import('./machine-commands.ts')
    return new Commands({ ...core, services: await services(), ask, askSecret })
  }
}

interface ImageKeeperOptions {
  session: CurrentSession
  source: Pick<SessionSource, 'keepImage'>
  activities: Activities
  /** Resolves when there is a session to store it in. */
  whenOpen: () => Promise<void>
}

/** Stores images in the current session. */
function imageKeeper({ session, source, activities, whenOpen }: ImageKeeperOptions): ImagesOptions['keep'] {
  return async (image) => {
    await whenOpen()
    const { handle } = session
    if (!handle) throw new Error('There is no session to store the image in. /new starts one.')
    return activities.track('Storing the image', source.keepImage(handle.sessionId, image))
  }
}
