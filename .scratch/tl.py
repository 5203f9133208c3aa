import sys,time,os,threading
sys.path.insert(0,'benchmarks'); import cores
import numpy as np, missratio as mr
from missratio._base import threads as T
import importlib,pkgutil
log=[]
orig=T.share
def share(work,items,n):
    spans=[]
    def w(i):
        a=time.perf_counter(); c=time.thread_time(); r=work(i); spans.append((time.perf_counter()-a,time.thread_time()-c)); return r
    a=time.perf_counter(); r=orig(w,items,n); b=time.perf_counter()
    log.append((a,b,getattr(work,'__qualname__',str(work)),len(items),n,sum(s[0] for s in spans),sum(s[1] for s in spans)))
    return r
import missratio
for m in pkgutil.walk_packages(missratio.__path__,'missratio.'):
    if any(x in m.name for x in ('__main__','cli','report','app','torch','dask','tensor')): continue
    try: mod=importlib.import_module(m.name)
    except Exception: continue
for mod in list(sys.modules.values()):
    if getattr(mod,'__name__','').startswith('missratio') and getattr(mod,'share',None) is orig: mod.share=share
from threadpoolctl import threadpool_limits
X,y=cores.table()
for t in (1,16):
    rs=[]
    for rep in range(4):
        with threadpool_limits(t):
            log.clear(); a=time.perf_counter(); r=mr.KLIEP().fit(X,y); b=time.perf_counter()
        rs.append(b-a)
    print('threads',t,'fit',min(rs),rs,'read',min(cores.reading(X,t) for _ in range(3)))
    last=a; inside=0
    for s,e,q,n,k,w,c in log:
        print(f"  gap {1e3*(s-last):7.2f}  {q[:60]:60s} items {n:4d} thr {k:3d} wall {1e3*(e-s):8.2f} work {1e3*w:9.2f} cpu {1e3*c:9.2f}")
        last=e; inside+=e-s
    print('  end gap',1e3*(b-last),'inside',1e3*inside)
