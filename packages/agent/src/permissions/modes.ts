import type { Tool } from '../tools/tool.ts'
import { exitPlanName } from './exit-plan.ts'

/**
 * How much happens without asking. Deny rules, ask rules and control files hold in every mode for file tools and for the paths that a
 * command names; what a program that was allowed does by itself, no mode holds back.
 *
 * - `ask`: whatever only reads passes; the rest is asked unless a rule allows it.
 * - `accept-edits`: writing files in the working folder passes too.
 * - `plan`: only what reads; the rest is refused, also what a rule allows, until the user has accepted a plan.
 * - `auto`: everything passes. A command that cannot be read to its end is still asked if there are rules that it might break.
 */
export const permissionModes = ['ask', 'accept-edits', 'plan', 'auto'] as const
export type PermissionMode = (typeof permissionModes)[number]

/** From the narrowest to the widest. */
const widths: readonly PermissionMode[] = ['plan', 'ask', 'accept-edits', 'auto']

export function isWider(mode: PermissionMode, than: PermissionMode): boolean {
  return widths.indexOf(mode) > widths.indexOf(than)
}

export function narrowest(first: PermissionMode, ...others: readonly PermissionMode[]): PermissionMode {
  return others.reduce((narrow, mode) => (isWider(narrow, mode) ? mode : narrow), first)
}

/** The tools that the model is offered. The tool that ends planning is there only while there is a plan to make. */
export function toolsFor(mode: PermissionMode, tools: readonly Tool[]): Tool[] {
  return tools.filter((tool) => (mode === 'plan' ? tool.readOnly : tool.name !== exitPlanName))
}
