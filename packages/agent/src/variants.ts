/** Working copies of a folder, in which several sessions work side by side, and choosing one of them. */
export { CopyProblem, planCopies, type CopyPlan } from './workspace/working-copy.ts'
export { runCheck, type CheckEnd, type CheckRun } from './workspace/run-check.ts'
export {
  applyChoice,
  createVariant,
  lastCheck,
  listCopies,
  prepareChoice,
  recordVariant,
  removeCopy,
  removeOrphan,
  resumeChoice,
  type FinishedChoice,
  type ListedCopy,
  type PreparedChoice,
  type VariantPlaces,
  type WorkingCopy,
} from './workspace/variants.ts'
