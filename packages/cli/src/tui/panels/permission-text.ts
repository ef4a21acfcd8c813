import type { OpenQuestion } from '@tapetree/client'
import * as screen from '@tapetree/session/screen'
import { harmless } from '../../text/harmless.ts'

/** The basis of the user's decision. Nothing is cut, and nothing in it can be hidden. */
export function permissionText(question: OpenQuestion): screen.PermissionText {
  return screen.permissionText(question, seen)
}

/** Harmless, with everything spelled out that a screen does not show. */
export function seen(text: string): string {
  return screen.spellInvisible(harmless(text))
}
