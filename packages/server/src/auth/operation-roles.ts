import type { Operation } from '@tapetree/client'
import type { Role } from './role.ts'

/** What each operation needs. */
export const operationRoles: Record<Operation, Role> = {
  prompt: 'drive',
  steer: 'drive',
  follow_up: 'queue',
  cancel: 'drive',
  retry: 'drive',
  resume: 'drive',
  'permission.answer': 'approve',
  set_model: 'drive',
  set_thinking_level: 'drive',
  set_config: 'drive',
  compact: 'drive',
  branch: 'drive',
  label: 'queue',
  rename: 'queue',
  bash: 'drive',
  'queue.add': 'queue',
  'queue.edit': 'queue',
  'queue.move': 'queue',
  'queue.hold': 'queue',
  'queue.release': 'queue',
  'queue.remove': 'queue',
  'queue.clear': 'queue',
}
