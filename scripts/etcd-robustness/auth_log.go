package report

// Compiled into etcd's robustness tests by scripts/etcd-robustness.sh --auth. The tests take each
// entry of a log for a request that was carried out. With users and roles that change, some were
// refused when they were applied, because they were proposed at an earlier revision of auth.

import (
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/raft/v3/raftpb"
)

// authLog follows the revision of auth along a log.
type authLog struct {
	revision uint64
	seen     map[string]bool
}

// skips says of each entry in turn whether it changes nothing in the store: a change of users or
// roles, or a request that was refused for its revision.
func (a *authLog) skips(e *raftpb.Entry) bool {
	var request pb.InternalRaftRequest
	if len(e.Data) == 0 || proto.Unmarshal(e.Data, &request) != nil {
		return false
	}
	at := request.Header.GetAuthRevision()
	isOld := isChecked(&request) && request.Header.GetUsername() != "" && at < a.revision
	if at > a.revision {
		a.revision = at
	}
	change := changeOf(&request)
	if change == "" {
		return isOld || request.Authenticate != nil || request.AuthEnable != nil
	}
	if !a.seen[change] {
		if a.seen == nil {
			a.seen = map[string]bool{}
		}
		a.seen[change] = true
		if a.revision > 0 {
			a.revision++
		}
	}
	return true
}

// isChecked says whether the revision of auth decides on a request. It does where permissions are
// looked up: root's changes of users and roles, grants of leases and compactions need none; nor does
// the end of a lease without keys, which changes no revision.
func isChecked(r *pb.InternalRaftRequest) bool {
	return r.Put != nil || r.DeleteRange != nil || r.Txn != nil || r.LeaseRevoke != nil
}

// changeOf names a change of users or roles; "" for anything else. A user or role is changed once in
// each way: a change that comes again was repeated by its client, and is refused.
func changeOf(r *pb.InternalRaftRequest) string {
	switch {
	case r.AuthUserAdd != nil:
		return "add user " + r.AuthUserAdd.Name
	case r.AuthUserDelete != nil:
		return "delete user " + r.AuthUserDelete.Name
	case r.AuthUserChangePassword != nil:
		return "change password " + r.AuthUserChangePassword.Name
	case r.AuthUserGrantRole != nil:
		return "grant role " + r.AuthUserGrantRole.User
	case r.AuthRoleAdd != nil:
		return "add role " + r.AuthRoleAdd.Name
	case r.AuthRoleDelete != nil:
		return "delete role " + r.AuthRoleDelete.Role
	case r.AuthRoleGrantPermission != nil:
		return "grant permission " + r.AuthRoleGrantPermission.Name
	case r.AuthRoleRevokePermission != nil:
		return "revoke permission " + r.AuthRoleRevokePermission.Role
	default:
		return ""
	}
}
