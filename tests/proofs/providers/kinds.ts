import type { FakeApi } from '@tapetree/agent/testing'
import type { Loose, ParsedEvents } from './read-bytes.ts'

/** Kinds of events, blocks, items, members and ends that a stream has, as `<where> <kind>`. */
export function kindsIn(api: FakeApi, { events, body }: { events: ParsedEvents; body: string }): Set<string> {
  const kinds = new Set(events.values.flatMap((event) => scanners[api](event ?? {})))
  if (body.includes('\r\n')) kinds.add('wire crlf')
  if (/^:/m.test(body)) kinds.add('wire comment')
  if (events.isDamaged) kinds.add('wire damaged')
  if (/^event: error/m.test(body)) kinds.add('wire event-error')
  if (api === 'openaiCompatible' && !events.isDone) kinds.add('wire no-done')
  return new Set([...kinds].map((kind) => `${api} ${kind}`))
}

const scanners: Record<FakeApi, (event: Loose) => string[]> = {
  anthropic: (event) => [
    `event ${event.type}`,
    ...(event.content_block ? [`block ${event.content_block.type}`] : []),
    ...('service_tier' in (event.message?.usage ?? {}) ? [`tier ${event.message.usage.service_tier}`] : []),
    ...(event.type === 'content_block_delta' ? [`delta ${event.delta.type}`] : []),
    ...membersOf('start-usage', event.message?.usage),
    ...(event.type === 'message_delta'
      ? [
          ...membersOf('end', event),
          ...membersOf('end-delta', event.delta),
          ...membersOf('usage', event.usage),
          `stop ${event.delta.stop_reason}`,
        ]
      : []),
  ],
  openai: (event) => [
    `event ${event.type}`,
    ...(event.item ? [`item ${event.item.type}`] : []),
    ...membersOf('usage', event.response?.usage),
    ...(event.type === 'response.created' ? [`tier ${event.response.service_tier}`] : []),
    ...(/^response\.(?:completed|incomplete|failed)$/.test(event.type) ? [`end ${endOf(event.response)}`] : []),
  ],
  google: (event) => [
    ...membersOf('top', event),
    ...membersOf('usage', event.usageMetadata),
    ...(event.candidates ?? []).flatMap((candidate: Loose) => [
      ...membersOf('candidate', candidate),
      ...(candidate.finishReason ? [`finish ${candidate.finishReason}`] : []),
      ...(candidate.content?.parts ?? []).map((part: Loose) => {
        const members = Object.keys(part).filter((member) => geminiMembers.has(member))
        return `part ${members.sort().join('+')}`
      }),
    ]),
  ],
  openaiCompatible: (event) => [
    ...membersOf('top', event),
    ...membersOf('usage', event.usage),
    ...Object.entries(event.usage ?? {}).flatMap(([member, value]) =>
      Object.keys(typeof value === 'object' ? (value ?? {}) : {}).map((inner) => `usage ${member}.${inner}`),
    ),
    ...(event.choices ?? []).flatMap((choice: Loose) => [
      ...membersOf('choice', choice),
      ...(choice.finish_reason ? [`finish ${choice.finish_reason}`] : []),
      ...Object.entries(choice.delta ?? {}).map(([member, value]) => `delta ${member}${value === null ? '=null' : ''}`),
      ...(choice.delta?.tool_calls ?? []).map((call: Loose) => {
        const [outer, inner] = [call, call.function].map((value: object) =>
          Object.keys(value).filter((member) => callMembers.has(member)),
        )
        return `call ${outer?.sort().join('+')}(${inner?.sort().join('+')})`
      }),
    ]),
    ...(event.choices?.length === 0 ? [`no-choices ${event.usage ? 'usage' : 'nothing'}`] : []),
  ],
}

const geminiMembers = new Set([
  ...['text', 'thought', 'thoughtSignature', 'functionCall', 'executableCode', 'codeExecutionResult'],
  ...['toolCall', 'toolResponse'],
])

const callMembers = new Set(['index', 'id', 'type', 'function', 'name', 'arguments'])

function endOf({ status, incomplete_details: details, error }: Loose): string {
  return [status, details?.reason, error?.code].filter((each) => each !== undefined).join('/')
}

function membersOf(where: string, value: object | undefined): string[] {
  return Object.keys(value ?? {}).map((member) => `${where} ${member}`)
}

/** The kinds that providers are known to send. The proof fails if it did not try one of them. */
const knownKinds: Record<FakeApi, Record<string, string>> = {
  anthropic: {
    event:
      'message_start content_block_start content_block_delta content_block_stop message_delta message_stop ping error',
    block:
      'text thinking redacted_thinking tool_use server_tool_use web_search_tool_result web_fetch_tool_result ' +
      'text_editor_code_execution_tool_result bash_code_execution_tool_result code_execution_tool_result ' +
      'tool_search_tool_result advisor_tool_result mcp_tool_use mcp_tool_result compaction fallback',
    delta: 'text_delta input_json_delta thinking_delta signature_delta citations_delta compaction_delta',
    'start-usage':
      'input_tokens output_tokens cache_creation_input_tokens cache_read_input_tokens service_tier cache_creation ' +
      'inference_geo server_tool_use',
    end: 'type delta usage context_management',
    'end-delta': 'stop_reason stop_sequence stop_details container',
    usage:
      'output_tokens input_tokens cache_creation_input_tokens cache_read_input_tokens server_tool_use iterations ' +
      'output_tokens_details',
    stop: 'end_turn tool_use max_tokens stop_sequence refusal pause_turn',
    tier: 'standard null',
    wire: 'crlf comment damaged',
  },
  openai: {
    event:
      'response.created response.in_progress response.queued response.completed response.incomplete ' +
      'response.output_item.added response.output_item.done response.content_part.added response.content_part.done ' +
      'response.output_text.delta response.output_text.done response.output_text.annotation.added ' +
      'response.function_call_arguments.delta response.function_call_arguments.done ' +
      'response.reasoning_summary_part.added response.reasoning_summary_part.done ' +
      'response.reasoning_summary_text.delta response.reasoning_summary_text.done ' +
      'response.reasoning_part.added response.reasoning_part.done response.reasoning_text.delta response.reasoning_text.done ' +
      'response.web_search_call.in_progress response.web_search_call.searching response.web_search_call.completed ' +
      'response.code_interpreter_call.in_progress response.code_interpreter_call_code.delta ' +
      'response.code_interpreter_call_code.done response.code_interpreter_call.interpreting ' +
      'response.code_interpreter_call.completed response.file_search_call.in_progress ' +
      'response.file_search_call.searching response.file_search_call.completed response.mcp_list_tools.in_progress ' +
      'response.mcp_list_tools.completed response.mcp_call.in_progress response.mcp_call_arguments.delta ' +
      'response.mcp_call_arguments.done response.mcp_call.completed response.image_generation_call.in_progress ' +
      'response.image_generation_call.generating response.image_generation_call.partial_image ' +
      'response.image_generation_call.completed response.shell_call_command.added response.shell_call_command.delta ' +
      'response.shell_call_command.done response.shell_call_output_content.delta ' +
      'response.shell_call_output_content.done response.apply_patch_call_operation_diff.delta ' +
      'response.apply_patch_call_operation_diff.done response.custom_tool_call_input.delta ' +
      'response.custom_tool_call_input.done response.refusal.delta response.refusal.done response.failed error ping',
    item:
      'message reasoning function_call web_search_call code_interpreter_call file_search_call image_generation_call ' +
      'mcp_list_tools mcp_call mcp_approval_request tool_search_call tool_search_output compaction shell_call ' +
      'shell_call_output local_shell_call apply_patch_call custom_tool_call program program_output',
    end: 'completed incomplete/max_output_tokens incomplete/content_filter failed/server_error failed/insufficient_quota',
    tier: 'default auto flex null',
    usage:
      'input_tokens input_tokens_details output_tokens output_tokens_details total_tokens cost cost_in_usd_ticks is_byok ' +
      'cost_details num_sources_used num_server_side_tools_used context_details server_side_tool_usage_details',
    wire: 'crlf comment damaged',
  },
  google: {
    top: 'candidates usageMetadata modelVersion responseId createTime',
    candidate: 'content index finishReason groundingMetadata finishMessage urlContextMetadata',
    part:
      'text text+thought text+thoughtSignature functionCall functionCall+thoughtSignature executableCode ' +
      'codeExecutionResult executableCode+thoughtSignature thoughtSignature+toolCall thoughtSignature+toolResponse',
    usage:
      'promptTokenCount totalTokenCount promptTokensDetails candidatesTokenCount thoughtsTokenCount trafficType ' +
      'serviceTier cachedContentTokenCount cacheTokensDetails candidatesTokensDetails toolUsePromptTokenCount ' +
      'toolUsePromptTokensDetails',
    finish: 'STOP MAX_TOKENS SAFETY MALFORMED_FUNCTION_CALL',
    wire: 'crlf comment damaged',
  },
  openaiCompatible: {
    top:
      'choices created model id object system_fingerprint usage service_tier obfuscation provider citations ' +
      'search_results p stream_options x_groq prompt_filter_results generationId latency_checkpoint timings ' +
      'sla_metrics prompt_token_ids prompt_text moderation error',
    choice:
      'index delta finish_reason logprobs native_finish_reason content_filter_results text seed matched_stop message ' +
      'token_ids stop_reason role',
    delta:
      'content content=null role role=null reasoning_content reasoning_content=null reasoning reasoning=null ' +
      'reasoning_details tool_calls tool_calls=null token_id token_id=null channel refusal refusal=null provider_metadata ' +
      'executed_tools annotations index function_call=null',
    call:
      'function+index(arguments) function+id+index+type(arguments+name) function+id+index+type(arguments) ' +
      'function+index+type(arguments+name) function+id(arguments+name)',
    'no-choices': 'usage nothing',
    finish: 'stop tool_calls length content_filter',
    usage:
      'prompt_tokens completion_tokens total_tokens cost cost_details is_byok prompt_tokens_details ' +
      'completion_tokens_details search_context_size queue_time prompt_time completion_time total_time ' +
      'prompt_cache_hit_tokens prompt_cache_miss_tokens cached_tokens num_sources_used cost_in_usd_ticks service_tier ' +
      'cost.input_tokens_cost cost.output_tokens_cost cost.total_cost cost.request_cost cost.usd cost.hypercredits ' +
      'cost_details.upstream_inference_cost cost_details.upstream_inference_prompt_cost ' +
      'cost_details.upstream_inference_completions_cost cost_details.input_audio_cache_read_tokens ' +
      'prompt_tokens_details.cached_tokens prompt_tokens_details.audio_tokens prompt_tokens_details.video_tokens ' +
      'prompt_tokens_details.text_tokens prompt_tokens_details.image_tokens prompt_tokens_details.cache_write_tokens ' +
      'completion_tokens_details.reasoning_tokens completion_tokens_details.audio_tokens ' +
      'completion_tokens_details.accepted_prediction_tokens completion_tokens_details.rejected_prediction_tokens ' +
      'completion_tokens_details.image_tokens cache_creation_input_tokens market_cost reasoning_tokens ' +
      'server_tool_use_details.tool_calls_requested server_tool_use_details.tool_calls_executed ' +
      'server_tool_use_details.web_search_requests draft_tokens draft_tokens_acceptance prompt_tokens_per_second ' +
      'time_per_output_token_ms time_to_first_token_ms tokens_per_second',
    wire: 'crlf comment no-done damaged event-error',
  },
}

/**
 * Siblings of known kinds, by place: the agent must skip and count them. Some have a meaning of their own in JavaScript. `no-type` and
 * `nothing` stand for a missing kind, `not-an-object` for an event of another type.
 */
export const unknownKinds: Record<FakeApi, Record<string, readonly string[]>> = {
  anthropic: {
    event: ['content_block_highlight', 'message_limit', 'constructor', 'no-type', 'not-an-object'],
    block: ['hologram', 'video_tool_use', 'toString', '__proto__'],
    delta: ['hologram_delta', 'text_delta_v2', 'constructor', 'no-type'],
    'stop-reason': ['out_of_coffee', 'end_turn_v2', 'toString'],
  },
  openai: {
    event: ['response.hologram.delta', 'response.output_text.delta.v2', 'constructor', 'no-type', 'not-an-object'],
    item: ['hologram_call', 'video_generation_call', 'toString', 'no-type'],
    'incomplete-reason': ['out_of_coffee', 'deadline', 'toString'],
  },
  google: {
    event: ['hologram', 'serverContent', 'not-an-object'],
    part: ['hologram', 'videoResult', 'constructor', 'nothing'],
    'finish-reason': ['OUT_OF_COFFEE', 'STOP_V2', 'toString'],
  },
  openaiCompatible: {
    event: ['x_new_event', 'heartbeat', 'not-an-object'],
    'content-part': ['hologram', 'toString'],
    'finish-reason': ['out_of_coffee', 'eos', 'toString'],
  },
}

/** Where members are added that no version of the agent knows. */
const unknownMemberPlaces: Record<FakeApi, string> = {
  anthropic: 'event block delta message start-usage usage end-delta error',
  openai: 'event item part response usage error',
  google: 'top candidate content part usage',
  openaiCompatible: 'top choice delta call usage error',
}

/** The kinds that were not among those tried. */
export function missingKinds(tried: ReadonlySet<string>): string[] {
  const known = Object.entries(knownKinds).flatMap(([api, places]) =>
    Object.entries(places).flatMap(([where, kinds]) => kinds.split(' ').map((kind) => `${api} ${where} ${kind}`)),
  )
  const unknown = Object.entries(unknownKinds).flatMap(([api, places]) =>
    Object.entries(places).flatMap(([where, kinds]) => kinds.map((kind) => `${api} unknown ${where} ${kind}`)),
  )
  const members = Object.entries(unknownMemberPlaces).flatMap(([api, places]) =>
    places.split(' ').map((place) => `${api} unknown member-of-${place}`),
  )
  return [...known, ...unknown, ...members].filter((kind) => !tried.has(kind))
}
