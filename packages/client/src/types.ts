/** Types that members of other exports have. */
export type { Base, Oldest } from './replica.ts'
export type { ReplicaFrame } from './replica-session.ts'
export type { RestQueries, RestResults } from './rest-values.ts'
export type { LanguageServerState, ReadOnlyState } from './state-values.ts'
export type { CamelCase } from './wire-names.ts'
export type { PendingCommand } from './unacknowledged.ts'
