import {
  appendLargeValue,
  appendLong,
  appendMixed,
  appendSmall,
  create,
  groupCommit,
  tryAgain,
} from './append-phases.ts'
import { exportBranch, fork, unpack } from './copy-phases.ts'
import { giveNewlineBack, saveDerived, setAside } from './open-phases.ts'
import type { Scene } from './scene.ts'

/**
 * One thing that writes. It fills the disk when everything before it is done, tries, makes room and goes on; it says whether
 * the disk was full for it. With a little more room it will not be, and the phase is through.
 */
type RunPhase = (scene: Scene, fill: () => void) => Promise<boolean>

export interface Phase {
  name: string
  fills: 'pages' | 'inodes'
  run: RunPhase
}

export const phases: Phase[] = [
  { name: 'create', fills: 'pages', run: create },
  { name: 'create', fills: 'inodes', run: create },
  { name: 'append small lines', fills: 'pages', run: appendSmall },
  { name: 'append a long line', fills: 'pages', run: appendLong },
  { name: 'append a large value', fills: 'pages', run: appendLargeValue },
  { name: 'append a large value', fills: 'inodes', run: appendLargeValue },
  { name: 'append small and large at once', fills: 'pages', run: appendMixed },
  { name: 'try again at once', fills: 'pages', run: tryAgain },
  { name: 'group commit', fills: 'pages', run: groupCommit },
  { name: 'derived files', fills: 'pages', run: saveDerived },
  { name: 'derived files', fills: 'inodes', run: saveDerived },
  { name: 'set a torn end aside', fills: 'pages', run: setAside },
  { name: 'set a torn end aside', fills: 'inodes', run: setAside },
  { name: 'give a line its newline back', fills: 'pages', run: giveNewlineBack },
  { name: 'fork', fills: 'pages', run: fork },
  { name: 'fork', fills: 'inodes', run: fork },
  { name: 'branched session', fills: 'pages', run: exportBranch },
  { name: 'unpack', fills: 'pages', run: unpack },
]
