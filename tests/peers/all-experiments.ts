import { damageExperiments } from './damage.ts'
import { diskExperiments } from './disk.ts'
import type { Experiment } from './experiment.ts'
import { killExperiments } from './kill.ts'
import { keyExperiments } from './no-key.ts'
import { providerExperiments } from './provider-errors.ts'
import { serverExperiments } from './server.ts'
import { sharingExperiments } from './sharing.ts'

/** As they were first tried, in this order. */
const order = [
  'in the middle of an answer',
  'waiting in the queue',
  'in the middle of a shell command',
  'last line of the log torn',
  'a corrupt line in the middle',
  'disk full',
  'two processes on one session',
  'parent cycle',
  'one of two parallel tools',
  'go back to an earlier entry',
  'second observer',
  '429',
  'a permanent error',
  'web page',
  '200 concurrent adds',
  'no key',
]

const unordered: readonly Experiment[] = [
  ...killExperiments,
  ...damageExperiments,
  ...diskExperiments,
  ...sharingExperiments,
  ...providerExperiments,
  ...serverExperiments,
  ...keyExperiments,
]

export const allExperiments: readonly Experiment[] = order.flatMap((words) =>
  unordered.filter(({ experiment }) => experiment.includes(words)),
)
