import type { ImagesOptions } from '../input/images.ts'
import type { SessionSource } from '../../session-source.ts'
import type { Activities } from './activities.ts'
import type { CurrentSession } from './current-session.ts'

export interface ImageKeeperOptions {
  session: CurrentSession
  source: Pick<SessionSource, 'keepImage'>
  activities: Activities
  /** Resolves when there is a session to keep it in. */
  whenOpen: () => Promise<void>
}

/** Keeps images in the session that is shown. */
export function imageKeeper({ session, source, activities, whenOpen }: ImageKeeperOptions): ImagesOptions['keep'] {
  return async (image) => {
    await whenOpen()
    const { handle } = session
    if (!handle) throw new Error('There is no session to keep the image in. /new begins one.')
    return activities.track('Keeping the image', source.keepImage(handle.sessionId, image))
  }
}
