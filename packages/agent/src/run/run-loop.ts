import type { LoopContext, Position, RunEnd } from './loop-context.ts'
import { runToolCalls } from './tool-calls.ts'
import { turn } from './turn.ts'

/** One run after the other, as long as messages wait for the agent to be done. */
export interface Runs {
  /** Brackets the work with `run_start` and `run_end`, and mends what can be mended: then the work is begun again from where it stands. */
  inRun(work: (position: Position, context: LoopContext) => Promise<void>): Promise<RunEnd>
  /** Delivers the next message that waits, after the delay it has to wait; false if there is none. */
  deliverFollowUp(): Promise<boolean>
}

export async function runLoop(runs: Runs): Promise<RunEnd> {
  for (;;) {
    const end = await runs.inRun(runUntilSettled)
    if (end.outcome !== 'completed' || !(await runs.deliverFollowUp())) return end
  }
}

/** Turns and their calls, until the model asks for nothing more and nobody steers. May be begun at any position. */
async function runUntilSettled(start: Position, context: LoopContext): Promise<void> {
  let position = start
  let hasTurned = false
  for (;;) {
    if (position.openCalls.length > 0) await runToolCalls(position.openCalls, context)
    if (hasTurned) await context.turnEnds()
    const wasSteered = await deliverSteers(context)
    if (position.isSettled && !wasSteered) return
    await context.turnStarts()
    position = await turn(context)
    hasTurned = true
  }
}

async function deliverSteers(context: LoopContext): Promise<boolean> {
  let wasSteered = false
  for (let steer = context.nextSteer(); steer; steer = context.nextSteer()) {
    await context.deliver(steer)
    wasSteered = true
  }
  return wasSteered
}
