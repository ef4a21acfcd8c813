import type { Session, WaitingMessage } from '@tapetree/session'
import type { RunSettings } from './run-settings.ts'

/** The message that goes out next, if one may. One that steers does not wait for a person to let it go: a person is its reason. */
export function nextWaiting(
  session: Session,
  { sendsFollowUps }: Pick<RunSettings, 'sendsFollowUps'>,
): WaitingMessage | undefined {
  return session.nextWaiting('steer') ?? session.nextWaiting('follow-up', { onlyReleased: !sendsFollowUps })
}
