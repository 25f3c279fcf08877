/** Types of events.k8s.io/v1. The format is in ../table-parser.ts. */
export const eventsTypes = `
Event and List
  ...=0:meta.TypeMeta metadata=1:meta.ObjectMeta eventTime!=2:meta.MicroTime
  series?=3:*EventSeries reportingController?=4:string reportingInstance?=5:string
  action?=6:string reason?=7:string regarding?=8:core.ObjectReference
  related?=9:*core.ObjectReference note?=10:string type?=11:string
  deprecatedSource?=12:core.EventSource deprecatedFirstTimestamp?=13:meta.Time
  deprecatedLastTimestamp?=14:meta.Time deprecatedCount?=15:int32
EventSeries
  count!=1:int32 lastObservedTime!=2:meta.MicroTime
`;
